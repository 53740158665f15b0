import { AtollError } from '../../base/error.ts';

/** `mayBeIdentity`: the client also accepts the plain bytes. */
type Coding = { name: 'gzip' | 'identity'; mayBeIdentity: boolean };

/**
 * The coding of a download, from its `Accept-Encoding`: the client's favourite among ours; at equal weight, the one we
 * list first. `*` stands for identity, or for gzip if identity is forbidden. Errors: `not_acceptable` if none is left.
 */
export function negotiateCoding(header: string | null): Coding {
  const offers = (header ?? '').split(',').map(readOffer);
  const weightOf = (name: string) => offers.find(offer => offer.name === name)?.weight;
  const isIdentityForbidden = weightOf('identity') === 0 || (weightOf('*') === 0 && weightOf('identity') === undefined);
  const chosen = (name: Coding['name']): Coding => ({ name, mayBeIdentity: !isIdentityForbidden });
  const [favourite] = offers
    .filter(({ name, weight }) => weight > 0 && ['gzip', 'identity', '*'].includes(name))
    .sort((a, b) => b.weight - a.weight);
  if (favourite?.name === 'gzip') return chosen('gzip');
  if (favourite?.name === 'identity' || (favourite?.name === '*' && !isIdentityForbidden)) return chosen('identity');
  if (favourite?.name === '*') return chosen('gzip');
  if (isIdentityForbidden)
    throw new AtollError(
      'not_acceptable',
      'none of the encodings in Accept-Encoding can be served: gzip and identity can',
    );
  return chosen('identity');
}

function readOffer(text: string): { name: string; weight: number } {
  const [name = '', ...parameters] = text.split(';').map(part => part.trim().toLowerCase());
  const quality = parameters.find(parameter => parameter.startsWith('q='));
  const weight = quality === undefined ? 1 : Number(quality.slice(2));
  return { name: name === 'x-gzip' ? 'gzip' : name, weight: Number.isFinite(weight) ? weight : 0 };
}
