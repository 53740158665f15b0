type Facts = { version: string; description: string; architecture: string; commit: string; epoch: number };
type Layer = { blob: string; digest: string; size: number; diffId: string; madeBy: string };
export function compressedLayer(tar: string, layout: string, madeBy: string): Promise<Layer>;
export function writeLayout(layout: string, layers: Layer[], facts: Facts): void;
export function packLayout(layout: string, file: string, epoch: number): Promise<void>;
