// Takes request bodies as fast as they come, and answers at their end.
const answer = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
const listener = Bun.listen<{ left: number }>({
  hostname: '127.0.0.1',
  port: 0,
  socket: {
    open(socket) {
      socket.data = { left: 0 };
    },
    data(socket, bytes) {
      if (socket.data.left === 0) {
        const end = bytes.indexOf('\r\n\r\n') + 4;
        socket.data.left = Number(/content-length: (\d+)/i.exec(bytes.toString('latin1', 0, end))?.[1] ?? 0) + end;
      }
      socket.data.left -= bytes.length;
      if (socket.data.left <= 0) {
        socket.data.left = 0;
        socket.write(answer);
      }
    },
  },
});
process.stdout.write(`${listener.port}\n`);
