/**
 * Where the edge refuses what Node.js's parser accepts, and why. Each is a spelling that servers read differently; no
 * client written on purpose sends one. There is no difference in the other direction.
 */
export const documentedRefusals: Readonly<Record<string, string>> = {
  'an encoding in a list with identity':
    'RFC 9112 knows no identity coding any more; servers differ in whether it is one',
  'an encoding in a list with gzip': 'a transfer coding that the edge does not undo is answered 501 (RFC 9112 6.1)',
  'an encoding with a comma before it': 'empty list members: some servers read an unknown coding',
  'an encoding that is empty, with a length': 'both fields are there: one server takes the length, another chunks',
  'an encoding in HTTP/1.0': 'RFC 9112 6.1: its framing is faulty, and HTTP/1.0 proxies pass it on as it is',
  'a chunk size with very many zeros': 'a size is at most 32 characters',
  'a chunk extension of 5,000 characters': 'extensions are at most 4 KiB: nobody uses them but to hide something',
  'a trailer that names another host': 'fields that frame or route have no place behind a message (RFC 9110 6.5.1)',
  'a request in HTTP/0.9': 'it has no headers, so that it could be routed nowhere',
  'a request in HTTP/2.0': 'such a version does not exist in this form; the preface of HTTP/2 looks like it',
  'two spaces before the target': 'RFC 9112 3: single spaces; lenient servers cut the line elsewhere',
  'two spaces behind the target': 'the same',
  'bare line feeds before a request': 'only CRLF ends a line; a bare line feed is where smuggling begins',
  'a bare carriage return before a request': 'the same',
  'two hosts': 'RFC 9112 3.2 demands a 400: the edge routes by the host, and a server may take the other one',
  'two hosts that agree': 'the same; nobody sends it',
  'a host with a space': 'not a host (RFC 9110 7.2)',
  'a host with a path': 'not a host',
  'a host with a user': 'not a host',
  'a host with a comma': 'not a host: a list of two that were joined',
  'a host that is empty': 'it could be routed nowhere',
  'a target with a scheme and no host': 'not a URI of http (RFC 9110 4.2.1)',
  'a target with an unknown scheme': 'the edge is a proxy of http and https alone',
  'a head of 129 fields': 'a head has at most 128 fields',
};
