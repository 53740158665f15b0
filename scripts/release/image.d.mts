type Facts = { version: string; description: string; architecture: string; commit: string; epoch: number };
export function writeImage(
  tree: string,
  output: string,
  facts: Facts,
  base?: (tar: string, packages: readonly string[], epoch: number) => Promise<void>,
): Promise<void>;
