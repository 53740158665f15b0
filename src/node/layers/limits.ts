import type { ImageLimits } from '../../protocol/builder.ts';

/** Limits of one layer, whatever it is made from. */
export const layerLimits: ImageLimits = { bytesMax: 20 * 2 ** 30, inodesMax: 1_000_000 };

/** A stack of this many layers is merged into one: a sandbox's root takes at most 128, and snapshots add to them. */
export const stackedLayersMax = 64;
