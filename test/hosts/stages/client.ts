import { finding, findingsIn, sh, type Stage } from './stage.ts';

const timeoutMs = 180 * 60_000;

/** Everything that a client does, through the published SDK. */
export const client: Stage = {
  name: 'client',
  async run(scene) {
    const names = scene.only.map(name => `'${name}'`).join(' ');
    const { exitCode, output } = await sh(scene, `$bun test/hosts/inside/client.ts ${names} 2>&1`, timeoutMs);
    const found = findingsIn(output);
    return exitCode === 0 ? found : [...found, finding('the client’s program', false, output.slice(-600))];
  },
};
