import { existsSync } from 'node:fs';
import { readSmallFile, writeSmallFile } from './small-file.ts';

/** For programs that bring their own list of authorities: where to find the sandbox's. */
const trustVariables: Record<string, string> = {
  NODE_EXTRA_CA_CERTS: '/usr/local/share/ca-certificates/atoll.crt',
  SSL_CERT_FILE: '/etc/ssl/certs/ca-certificates.crt',
  REQUESTS_CA_BUNDLE: '/etc/ssl/certs/ca-certificates.crt',
};

/** Kept apart too, so that `update-ca-certificates` of Debian and Alpine finds it when it makes the bundle anew. */
const ownFile = '/usr/local/share/ca-certificates/atoll.crt';
/** The bundle of Debian and Alpine: made where there is none. */
const mainBundle = '/etc/ssl/certs/ca-certificates.crt';
/** Further bundles: Fedora and its family, openSUSE. Written where they exist. */
const otherBundles = ['/etc/pki/tls/certs/ca-bundle.crt', '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem', '/etc/ssl/ca-bundle.pem', '/etc/ssl/cert.pem'];

/**
 * Variables for programs that bring their own list of authorities, where the sandbox has some to show: of its own, or of a template
 * that was built behind a proxy which opens connections, and whose sandboxes are behind it too. `path`: where those are.
 */
export function trustVariablesFor(caBundle: string | undefined, path = ownFile): Record<string, string> {
  return caBundle || existsSync(path) ? trustVariables : {};
}

const begin = '# Certificates of this sandbox';
const end = '# End of the certificates of this sandbox';

/** Adds certificates to what programs of the sandbox trust. Again with others replaces them. */
export function trustCertificates(pem: string): void {
  writeWhereOther(ownFile, pem);
  writeWhereOther(mainBundle, withOurs(readSmallFile(mainBundle) ?? '', pem));
  for (const bundle of otherBundles) {
    // Most are links to one of the others.
    const text = readSmallFile(bundle);
    if (text !== undefined && !text.includes(pem.trim())) writeSmallFile(bundle, withOurs(text, pem));
  }
}

function withOurs(bundle: string, pem: string): string {
  const start = bundle.indexOf(begin);
  const stop = bundle.indexOf(end);
  const others = start >= 0 && stop > start ? bundle.slice(0, start) + bundle.slice(stop + end.length).replace(/^\n/, '') : bundle;
  const before = others.trimEnd();
  return `${before === '' ? '' : `${before}\n`}${begin}\n${pem.trim()}\n${end}\n`;
}

/** A file that says it already is left alone: in a build, touching it would make it part of every layer. */
function writeWhereOther(path: string, text: string): void {
  if (readSmallFile(path) !== text) writeSmallFile(path, text);
}
