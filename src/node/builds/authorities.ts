import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

const certificate = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;

/** The certificates (PEM) of a file, or of all `.crt` and `.pem` files of a folder; undefined if there are none. */
export function readAuthorities(path: string): string | undefined {
  if (!existsSync(path)) return undefined;
  const files = statSync(path).isDirectory()
    ? readdirSync(path)
        .filter(name => /\.(crt|pem)$/.test(name))
        .sort()
        .map(name => join(path, name))
    : [path];
  const found = files.flatMap(file => readFileSync(file, 'utf8').match(certificate) ?? []);
  return found.length > 0 ? `${found.join('\n')}\n` : undefined;
}
