import { AtollError, messageOf } from '../../../base/error.ts';
import { readIfThere } from '../../../base/small-file.ts';
import { parseImageReference, type ImageReference } from './reference.ts';

/** How one registry is reached. */
type RegistrySettings = {
  /** Without TLS. */
  http?: boolean;
  /** Its address is one that builds otherwise can't reach: of the machine itself, or of its network. */
  private?: boolean;
  username?: string;
  password?: string;
};

/**
 * What an operator says about images, as the JSON file of the data directory:
 * - `images`: what stands for an image by its name (`ubuntu:22.04`): another image's name, or the absolute path of an
 *   archive (OCI layout or `docker save`) or of an OCI layout's directory;
 * - `mirrors`: registry by registry, another one that has the same images;
 * - `registries`: how a registry is reached.
 */
export type ImageSettings = {
  images: Record<string, string>;
  mirrors: Record<string, string>;
  registries: Record<string, RegistrySettings>;
};

/**
 * Reads the file each time, so that a change applies to the next build. Without a file, images come from where they
 * say.
 */
export function readImageSettings(path: string): ImageSettings {
  const empty: ImageSettings = { images: {}, mirrors: {}, registries: {} };
  const text = readIfThere(path);
  if (text === undefined) return empty;
  try {
    return { ...empty, ...(JSON.parse(text) as Partial<ImageSettings>) };
  } catch (error) {
    throw new AtollError(
      'unavailable',
      `the operator's settings of images (images.json) can't be read: ${messageOf(error)}`,
      { fields: { path } },
    );
  }
}

/** Where an image comes from in the end. */
type ImageOrigin = { kind: 'registry'; reference: ImageReference } | { kind: 'file'; path: string };

/** Where the image of this name comes from, by the operator's settings. Errors: `invalid` for a malformed name. */
export function originOf(settings: ImageSettings, text: string): ImageOrigin {
  const asked = parseImageReference(text);
  const entries = Object.entries(settings.images);
  const mapped =
    entries.find(([name]) => name === text) ?? entries.find(([name]) => parseImageReference(name).text === asked.text);
  const target = mapped?.[1] ?? text;
  if (target.startsWith('/')) return { kind: 'file', path: target };
  const reference = parseImageReference(target);
  return {
    kind: 'registry',
    reference: { ...reference, registry: settings.mirrors[reference.registry] ?? reference.registry },
  };
}
