import type { Client } from '../connection/client.ts';
import type { Fields } from '../../http1/fields.ts';
import { headerId, internalHeader, type KnownHeader, unknownHeader } from '../../http1/known-headers.ts';
import type { RequestHead } from '../../http1/request-head.ts';
import { nominatedFields } from './nominated-fields.ts';

/** How a request is changed on its way. */
export type ForwardPlan = {
  /** The Host that the upstream sees; null: the client's own. */
  readonly host: string | null;
  /** The request asks for another protocol, and may get it. */
  readonly upgrade: boolean;
  /** A prefix of header names, in lower case: only the first line of each such name passes. Absent: no such rule. */
  readonly firstOf?: string;
};

const crlf = Buffer.from('\r\n');
const upgradeLine = Buffer.from('Connection: Upgrade\r\n');
const closeLine = Buffer.from('Connection: close\r\n');
const root = Buffer.from('/');

/**
 * Fields that never pass: those of this connection only (RFC 9110 7.6.1), those that steer or unlock the edge, and
 * those that only the edge or the platform may set.
 */
const dropped = dropTable([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'http2-settings',
  'upgrade',
  'e2b-sandbox-id',
  'e2b-sandbox-port',
  'svc-sandbox-id',
  'svc-sandbox-port',
  'e2b-traffic-access-token',
  'svc-traffic-access-token',
  'x-forwarded-for',
  'x-forwarded-proto',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-server',
  'x-real-ip',
  'forwarded',
]);
dropped[internalHeader] = 1;

/** Writes the head that the upstream gets to the start of `out`, which must have room. Answers its length. */
export function composeRequest(out: Buffer, head: RequestHead, client: Client, plan: ForwardPlan): number {
  const { bytes, fields } = head;
  const hostIndex = fields.indexOf('host');
  const replaceHost = plan.host !== null || head.targetIsAbsolute;
  const nominated = nominatedFields(fields);
  const repeated = plan.firstOf === undefined ? null : repeatedFields(fields, plan.firstOf);
  let length = copyRequestLine(out, head);
  // Copies each run of passing lines at once.
  let runStart = fields.count > 0 ? fields.lineStart(0) : 0;
  for (let i = 0; i < fields.count; i++) {
    const id = fields.ids[i] as number;
    let drop = dropped[id] === 1;
    if (id === headerId.upgrade && plan.upgrade) drop = false;
    if (i === hostIndex && replaceHost) drop = true;
    if (!drop && nominated !== null && nominated.has(fields.nameAt(i))) drop = true;
    if (repeated?.has(i)) drop = true;
    if (!drop) continue;
    length += bytes.copy(out, length, runStart, fields.lineStart(i));
    runStart = fields.lineEnd(i);
  }
  if (fields.count > 0) length += bytes.copy(out, length, runStart, head.end - 2);
  if (replaceHost) length += out.write(`Host: ${plan.host ?? authorityOf(head)}\r\n`, length, 'latin1');
  length = copyForwarded(out, length, head, client);
  if (plan.upgrade) length += upgradeLine.copy(out, length);
  else if (head.minorVersion === 0) length += closeLine.copy(out, length);
  return length + crlf.copy(out, length);
}

/**
 * The lines of fields that repeat an earlier one, among those whose name begins with the prefix; null if there are
 * none.
 */
function repeatedFields(fields: Fields, start: string): Set<number> | null {
  const seen = new Set<string>();
  const repeated = new Set<number>();
  for (let i = 0; i < fields.count; i++) {
    if (fields.ids[i] !== unknownHeader) continue;
    const name = fields.nameAt(i);
    if (!name.startsWith(start)) continue;
    if (seen.has(name)) repeated.add(i);
    seen.add(name);
  }
  return repeated.size === 0 ? null : repeated;
}

/** The host that the client asked for: the authority of an absolute target (RFC 9112 3.2.2), else the Host field. */
export function hostOf(head: RequestHead): string | undefined {
  return head.targetIsAbsolute ? authorityOf(head) : head.fields.text('host');
}

/** The target without scheme and authority. */
export function pathOf(head: RequestHead): string {
  return head.targetIsAbsolute ? head.bytes.toString('latin1', pathStart(head), head.targetEnd) : head.target;
}

function copyRequestLine(out: Buffer, head: RequestHead): number {
  const { bytes } = head;
  const lineEnd = head.targetEnd + ' HTTP/1.1\r\n'.length;
  if (!head.targetIsAbsolute) return bytes.copy(out, 0, head.start, lineEnd);
  let length = bytes.copy(out, 0, head.start, head.targetStart);
  const path = pathStart(head);
  if (bytes[path] !== root[0]) length += root.copy(out, length);
  return length + bytes.copy(out, length, path, lineEnd);
}

function copyForwarded(out: Buffer, start: number, head: RequestHead, client: Client): number {
  let length = start;
  const { fields } = head;
  if (client.context.trustForwardedHeaders) {
    const addresses = fields.list('x-forwarded-for');
    const lines = [
      `X-Forwarded-For: ${addresses === undefined ? '' : `${addresses}, `}${client.address}`,
      `X-Forwarded-Proto: ${fields.text('x-forwarded-proto') ?? (client.secure ? 'https' : 'http')}`,
      `X-Forwarded-Host: ${fields.text('x-forwarded-host') ?? hostOf(head) ?? ''}`,
    ];
    return length + out.write(`${lines.join('\r\n')}\r\n`, length, 'latin1');
  }
  length += client.forwardedLines.copy(out, length);
  const host = fields.indexOf('host');
  if (head.targetIsAbsolute) length += out.write(authorityOf(head), length, 'latin1');
  else if (host >= 0) length += head.bytes.copy(out, length, fields.valueStart(host), fields.valueEnd(host));
  return length + crlf.copy(out, length);
}

function authorityOf(head: RequestHead): string {
  const target = head.bytes.toString('latin1', head.targetStart, pathStart(head));
  return target.slice(target.indexOf('://') + 3).replace(/^[^@]*@/, '');
}

/** Where the path of an absolute target begins. */
function pathStart(head: RequestHead): number {
  const target = head.target;
  const authority = target.indexOf('://') + 3;
  const rest = /[/?#]/.exec(target.slice(authority));
  return rest === null ? head.targetEnd : head.targetStart + authority + rest.index;
}

function dropTable(names: readonly KnownHeader[]): Uint8Array {
  const table = new Uint8Array(256);
  for (const name of names) table[headerId[name]] = 1;
  table[unknownHeader] = 0;
  return table;
}
