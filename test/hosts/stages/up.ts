import type { Finding } from '../inside/feature.ts';
import { finding, sh, type Scene, type Stage } from './stage.ts';

const startTimeoutMs = 45 * 60_000;
const sdkTimeoutMs = 10 * 60_000;

type Command = 'npm run up' | 'bin/atoll up';

const bySystemd = {
  start: (command: Command) =>
    `systemctl reset-failed atoll 2>/dev/null; systemd-run --quiet --unit=atoll --working-directory=$PWD $(env | grep ^ATOLL_ | sed s/^/--setenv=/) -p StandardOutput=append:/var/log/atoll -p StandardError=append:/var/log/atoll ${command.replace('bin/', '$PWD/bin/')}`,
  hasEnded: '! systemctl is-active --quiet atoll',
  log: '/var/log/atoll',
};

const byHand = {
  start: (command: Command) => `setsid nohup ${command} >> $ATOLL_DATA_DIR.log 2>&1 & started=$!`,
  hasEnded: '! kill -0 $started',
  log: '$ATOLL_DATA_DIR.log',
};

/**
 * Starts the platform as an operator does, beyond the end of the login, and waits until it serves. Its port is opened
 * last. Only the first start pays for npm's own time, which is minutes on emulated processors.
 */
async function startPlatform(scene: Scene, command: Command): Promise<{ up: boolean; output: string }> {
  const { start, hasEnded, log } = scene.machine.kind === 'guest' ? bySystemd : byHand;
  const script = `${start(command)}\nwhile ! (: < /dev/tcp/127.0.0.1/${scene.port}) 2>/dev/null; do if ${hasEnded}; then tail -c 1500 ${log}; exit 1; fi; sleep 1; done; echo "served after $SECONDS s"`;
  const { exitCode, output } = await sh(scene, script, startTimeoutMs);
  return { up: exitCode === 0, output };
}

/** Restarts a platform that has ended, as a finding. */
export async function startAgain(scene: Scene, feature: string): Promise<Finding> {
  const { up, output } = await startPlatform(scene, 'bin/atoll up');
  return finding(feature, up, up ? '' : output);
}

const startFeature = 'npm run up';

/** `npm run up`, and the first lines of the README. */
export const up: Stage = {
  name: 'up',
  starts: startFeature,
  async run(scene) {
    const { up, output } = await startPlatform(scene, 'npm run up');
    const found = [finding(startFeature, up, up ? (/served after \d+ s/.exec(output)?.[0] ?? '') : output)];
    if (!up) return found;
    const script = `import('e2b').then(async ({ Sandbox }) => { const s = await Sandbox.create({ requestTimeoutMs: 120000 }); const { stdout } = await s.commands.run('python3 -c "print(6 * 7)"'); await s.kill(); console.log('answer', stdout.trim()); }).catch(error => { console.log(error.code ?? error.message); process.exit(1); })`;
    const sdk = await sh(scene, `node --version; node -e ${quoted(script)} 2>/dev/null`, sdkTimeoutMs);
    const version = sdk.output.split('\n')[0] ?? '';
    const loads = sdk.output.includes('answer 42');
    return [
      ...found,
      loads
        ? finding('published SDK on the distribution’s Node.js', true, version)
        : {
            feature: 'published SDK on the distribution’s Node.js',
            verdict: 'refused',
            detail: `${version}: ${sdk.output.split('\n')[1] ?? ''}; it needs 20.19, 22.12 or newer`,
          },
    ];
  },
};

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;
