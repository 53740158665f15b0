// Reads cases from stdin (length as four bytes, then the bytes of a connection) and answers a line of JSON for each:
// the requests that llhttp found in it, through the same parser object that node:http sets up for each connection, and
// whether it refused the rest. node:http itself would report a whole request only if nothing behind it broke the
// connection first.
import { createRequire } from 'node:module';

const { HTTPParser, methods } = createRequire(import.meta.url)('_http_common');

function frame(bytes) {
  const requests = [];
  const parser = new HTTPParser();
  let current;
  parser.initialize(HTTPParser.REQUEST, {});
  // As in node:http: if fields were reported before the head was whole, so was the target.
  let early = '';
  parser[HTTPParser.kOnMessageBegin | 0] = () => void (early = '');
  parser[HTTPParser.kOnHeaders | 0] = (_headers, url) => void (early = url ?? early);
  parser[HTTPParser.kOnHeadersComplete | 0] = (_major, _minor, _headers, method, url, _status, _message, upgrade) => {
    current = { method: methods[method], target: url ?? early, body: '', whole: false, upgrade };
    requests.push(current);
    return upgrade ? 2 : 0;
  };
  parser[HTTPParser.kOnBody | 0] = part => void (current.body += part.toString('latin1'));
  parser[HTTPParser.kOnMessageComplete | 0] = () => void (current.whole = true);
  const result = parser.execute(bytes);
  return { requests, refused: result instanceof Error ? result.code : undefined };
}

let rest = Buffer.alloc(0);
for await (const part of process.stdin) {
  rest = Buffer.concat([rest, part]);
  let answers = '';
  while (rest.length >= 4 && rest.length >= 4 + rest.readUInt32LE(0)) {
    const length = rest.readUInt32LE(0);
    answers += `${JSON.stringify(frame(Buffer.from(rest.subarray(4, 4 + length))))}\n`;
    rest = rest.subarray(4 + length);
  }
  process.stdout.write(answers);
}
