import { AtollError } from '../../../base/error.ts';

/** The most servers that one URL names. */
const hostsMax = 8;

const form = /^(postgres(?:ql)?:\/\/)((?:[^/?#]*@)?)([^/?#]*)([^?#]*)(?:\?([^#]*))?$/;

/**
 * The URL of each server that a URL names, in order, as libpq reads one with several hosts: `h1:5432,h2:5432` after the
 * user, or the parameters `host` and `port`, e.g. with folders of unix sockets. A single port applies to all. Throws
 * `invalid` where these don't fit together.
 */
export function hostsOf(url: string): string[] {
  const [, scheme = '', user = '', authority = '', path = '', query = ''] = form.exec(url) ?? [];
  if (scheme === '') throw new AtollError('invalid', 'ATOLL_DATABASE_URL is no URL of a PostgreSQL database.');
  const parameters = new URLSearchParams(query);
  const hosts = (parameters.get('host') ?? '').split(',');
  const ports = (parameters.get('port') ?? '').split(',');
  const places = authority.split(',');
  const count = Math.max(hosts.length, places.length);
  const fits = (list: string[]) => list.length === count || list.length === 1;
  if (count > hostsMax) throw new AtollError('invalid', `ATOLL_DATABASE_URL names more than ${hostsMax} servers.`);
  if (!fits(hosts) || !fits(places) || !fits(ports) || (count > 1 && [...places, ...hosts].every(host => host === '')))
    throw new AtollError('invalid', 'ATOLL_DATABASE_URL names servers and ports that do not fit together.');
  return Array.from({ length: count }, (_, number) => {
    const own = new URLSearchParams(parameters);
    for (const [name, list] of [
      ['host', hosts],
      ['port', ports],
    ] as const)
      if (parameters.has(name)) own.set(name, list[number] ?? list[0] ?? '');
    const text = own.size > 0 ? `?${own}` : '';
    return `${scheme}${user}${places[number] ?? places[0]}${path}${text}`;
  });
}
