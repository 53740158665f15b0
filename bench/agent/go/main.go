// The yardstick of the agent: the same three jobs (start a process and stream its output, serve a file, take a file) by
// the same interface, as plainly as Go's standard library lets one write them. bench/agent/beside-go.ts runs it.
package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync"
)

const pieceBytes = 32 << 10

type startRequest struct {
	Process struct {
		Cmd  string            `json:"cmd"`
		Args []string          `json:"args"`
		Envs map[string]string `json:"envs"`
	} `json:"process"`
}

type event map[string]any

// stream writes enveloped messages of the Connect protocol, from several goroutines.
type stream struct {
	mutex  sync.Mutex
	writer http.ResponseWriter
}

func (s *stream) send(flag byte, message any) {
	payload, err := json.Marshal(message)
	if err != nil {
		return
	}
	envelope := make([]byte, 5, 5+len(payload))
	envelope[0] = flag
	binary.BigEndian.PutUint32(envelope[1:], uint32(len(payload)))
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if _, err := s.writer.Write(append(envelope, payload...)); err == nil {
		s.writer.(http.Flusher).Flush()
	}
}

func (s *stream) copy(name string, from io.Reader, done *sync.WaitGroup) {
	defer done.Done()
	piece := make([]byte, pieceBytes)
	for {
		size, err := from.Read(piece)
		if size > 0 {
			s.send(0, event{"event": event{"data": event{name: piece[:size]}}})
		}
		if err != nil {
			return
		}
	}
}

func start(writer http.ResponseWriter, request *http.Request) {
	var head [5]byte
	var asked startRequest
	if _, err := io.ReadFull(request.Body, head[:]); err != nil {
		http.Error(writer, err.Error(), http.StatusBadRequest)
		return
	}
	message := io.LimitReader(request.Body, int64(binary.BigEndian.Uint32(head[1:])))
	if err := json.NewDecoder(message).Decode(&asked); err != nil {
		http.Error(writer, err.Error(), http.StatusBadRequest)
		return
	}
	command := exec.Command(asked.Process.Cmd, asked.Process.Args...)
	for name, value := range asked.Process.Envs {
		command.Env = append(command.Env, name+"="+value)
	}
	writer.Header().Set("content-type", "application/connect+json")
	output := &stream{writer: writer}
	stdout, errOut := command.StdoutPipe()
	stderr, errErr := command.StderrPipe()
	if errOut != nil || errErr != nil || command.Start() != nil {
		output.send(2, event{"error": event{"code": "internal", "message": "the process did not start"}})
		return
	}
	output.send(0, event{"event": event{"start": event{"pid": command.Process.Pid}}})
	var copies sync.WaitGroup
	copies.Add(2)
	go output.copy("stdout", stdout, &copies)
	output.copy("stderr", stderr, &copies)
	copies.Wait()
	_ = command.Wait()
	code := command.ProcessState.ExitCode()
	output.send(0, event{"event": event{"end": event{"exitCode": code, "exited": true, "status": fmt.Sprint("exit status ", code)}}})
	output.send(2, event{})
}

func files(writer http.ResponseWriter, request *http.Request) {
	path := request.URL.Query().Get("path")
	if request.Method == http.MethodGet {
		http.ServeFile(writer, request, path)
		return
	}
	file, err := os.Create(path)
	if err == nil {
		_, err = io.Copy(file, request.Body)
		_ = file.Close()
	}
	if err != nil {
		http.Error(writer, err.Error(), http.StatusInternalServerError)
		return
	}
	writer.Header().Set("content-type", "application/json")
	_ = json.NewEncoder(writer).Encode([]map[string]string{{"path": path, "type": "file"}})
}

func main() {
	http.HandleFunc("/process.Process/Start", start)
	http.HandleFunc("/files", files)
	http.HandleFunc("/health", func(writer http.ResponseWriter, _ *http.Request) { writer.WriteHeader(http.StatusNoContent) })
	if err := http.ListenAndServe(":"+os.Args[1], nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
