import { AtollError } from '../../../base/error.ts';
import type { BuildProtocol } from '../../../protocol/build.ts';

const refuse = async (): Promise<never> => {
  throw new AtollError('unavailable', 'This installation has no node that builds templates');
};

/** For an installation that only runs what was built elsewhere. */
export const noBuilder: BuildProtocol = {
  readDockerfile: refuse,
  start: refuse,
  progress: async buildId => {
    throw new AtollError('not_found', `no node knows build ${buildId}`);
  },
  cancel: async () => {},
  forget: async () => {},
  collect: async () => ({ layersDeleted: 0, filesDeleted: 0, bytesFreed: 0 }),
  layerBytes: async () => ({}),
};
