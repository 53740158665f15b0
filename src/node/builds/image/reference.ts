import { AtollError } from '../../../base/error.ts';

/** An image by name, as `docker pull` takes it. */
export type ImageReference = {
  /** Host with port; `docker.io` if the name has none. */
  registry: string;
  /** Path below the registry, e.g. `library/debian`. */
  repository: string;
  /** A tag, or a digest (`sha256:…`), which takes precedence. */
  version: string;
  /** The full name, with every default filled in. */
  text: string;
};

const component = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/;
const host = /^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)*(:\d{1,5})?$/;
const referenceCharactersMax = 512;

/** Reads the name of an image as Docker does: `[registry/]path[:tag][@digest]`. Errors: `invalid`. */
export function parseImageReference(text: string): ImageReference {
  const refuse = (): never => {
    throw new AtollError(
      'invalid',
      `${text.slice(0, 200)} is not the name of an image; expected [registry/]name[:tag][@digest]`,
    );
  };
  if (text.length > referenceCharactersMax) return refuse();
  const [named = '', digest, ...more] = text.trim().split('@');
  if (more.length > 0 || (digest !== undefined && !/^sha256:[0-9a-f]{64}$/.test(digest))) return refuse();
  const slash = named.indexOf('/');
  const first = named.slice(0, Math.max(slash, 0));
  // The first part is a registry only if it looks like a host.
  const hasRegistry = slash >= 0 && (/[.:]/.test(first) || first === 'localhost');
  const registry = hasRegistry ? (first === 'index.docker.io' ? 'docker.io' : first) : 'docker.io';
  const [, path = '', tag] =
    /^(.*?)(?::([\w][\w.-]{0,127}))?$/.exec(hasRegistry ? named.slice(slash + 1) : named) ?? [];
  const repository = registry === 'docker.io' && !path.includes('/') ? `library/${path}` : path;
  if (!repository.split('/').every(part => component.test(part)) || !host.test(registry)) return refuse();
  const version = digest ?? tag ?? 'latest';
  return {
    registry,
    repository,
    version,
    text: `${registry}/${repository}${digest === undefined ? ':' : '@'}${version}`,
  };
}
