import { expect, test } from 'bun:test';
import { plainAnswer } from './answer.ts';
import { grpcAnswerBytes } from './grpc-answer.ts';

test('a refusal is said as gRPC has it, whatever its text holds', () => {
  expect(grpcAnswerBytes(plainAnswer(502, 'a % b\u00e4\r\nx: y')).toString()).toBe(
    'HTTP/1.1 200 OK\r\nContent-Type: application/grpc\r\nGrpc-Status: 14\r\n' +
      'Grpc-Message: a %25 b%C3%A4%0D%0Ax: y\r\nContent-Length: 0\r\n\r\n',
  );
  for (const [status, code] of [
    [403, 7],
    [429, 8],
    [404, 12],
    [418, 2],
  ] as const)
    expect(grpcAnswerBytes(plainAnswer(status, '')).toString()).toContain(`Grpc-Status: ${code}\r\n`);
});
