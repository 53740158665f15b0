// Reads what clients asked of sandboxes and were told, as a JSON array of operations, and writes the sandboxes of which
// that can't be explained by any order in which each operation took effect at one moment between its call and its return.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// perSandbox bounds the search: more than that is told as undecided.
const perSandbox = 30 * time.Second

// operation is one of a client's; Told is what it heard, "" where it heard nothing that it can rely on.
type operation struct {
	Client   int    `json:"client"`
	Sandbox  string `json:"sandbox"`
	Kind     string `json:"kind"`
	Told     string `json:"told"`
	Called   int64  `json:"called"`
	Returned *int64 `json:"returned"`
}

// finding is a sandbox without an explanation.
type finding struct {
	Sandbox    string      `json:"sandbox"`
	Verdict    string      `json:"verdict"`
	Operations []operation `json:"operations"`
}

// The states of a sandbox. In ending, which nobody is shown, a connect still finds it.
const (
	none    = "none"
	running = "running"
	paused  = "paused"
	ending  = "ending"
	gone    = "gone"
)

func isLive(state string) bool { return state == running || state == paused }

// step says whether an operation can have been told this in this state, and which state it leaves.
func step(state, input, output interface{}) (bool, interface{}) {
	now, kind, told := state.(string), input.(string), output.(string)
	if told == "" {
		// It may take effect now. That it never does is to do so after everything that is looked at.
		return true, effect(now, kind)
	}
	switch told {
	case "missing":
		return !isLive(now), now
	case "conflict":
		return isLive(now) || now == ending, now
	case "changing":
		return isLive(now), now
	case running, paused:
		return now == told, now
	case "done":
		next := effect(now, kind)
		return next != now, next
	case "already":
		return now == running, now
	}
	panic("unknown answer " + told)
}

// effect is the state after an operation; the same one where it finds nothing to do.
func effect(now, kind string) string {
	switch {
	case kind == "create" && now == none:
		return running
	case kind == "pause" && now == running:
		return paused
	case kind == "connect" && now == paused:
		return running
	case kind == "kill" && isLive(now):
		return ending
	case kind == "end" && now == ending:
		return gone
	}
	return now
}

// check finds an order for the operations on one sandbox.
func check(operations []operation) porcupine.CheckResult {
	model := porcupine.Model{Init: func() interface{} { return none }, Step: step}
	history := []porcupine.Operation{}
	for _, one := range operations {
		returned := int64(math.MaxInt64)
		if one.Returned != nil {
			returned = *one.Returned
		}
		history = append(history, porcupine.Operation{
			ClientId: one.Client, Input: one.Kind, Output: one.Told, Call: one.Called, Return: returned,
		})
		if one.Kind == "kill" && (one.Told == "done" || one.Told == "") {
			// Its second step: nobody can be told of a sandbox whose kill was answered.
			last := history[len(history)-1]
			last.Input = "end"
			history = append(history, last)
		}
	}
	return porcupine.CheckOperationsTimeout(model, history, perSandbox)
}

func main() {
	var all []operation
	if err := json.NewDecoder(os.Stdin).Decode(&all); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	bySandbox := map[string][]operation{}
	for _, one := range all {
		bySandbox[one.Sandbox] = append(bySandbox[one.Sandbox], one)
	}
	names := []string{}
	for name := range bySandbox {
		names = append(names, name)
	}
	sort.Strings(names)
	findings := []finding{}
	for _, name := range names {
		operations := bySandbox[name]
		if verdict := check(operations); verdict != porcupine.Ok {
			findings = append(findings, finding{name, string(verdict), operations})
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(findings); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
