import type { BuildResult } from '../../../src/protocol/build.ts';
import type { CreateSandbox } from '../../../src/protocol/node.ts';
import { runInSandbox } from '../../node/support/run-in-sandbox.ts';
import { imageOf, step, type BuildNode } from './build-node.ts';

/** A server that tells a number it drew at its start, and the variables that it was started with. */
const server = `cat > ~/server.py <<'END'
import http.server, os
drawn = os.urandom(8).hex()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
        self.wfile.write(f"{drawn} {os.environ.get('GREETING')}\\n".encode())
http.server.ThreadingHTTPServer(('127.0.0.1', 8000), Handler).serve_forever()
END`;
const commands = {
  startCommand: 'date > ~/started; exec python3 ~/server.py',
  readyCommand: 'curl -sf localhost:8000 >/dev/null',
};
const template = { steps: [step('RUN', server), step('ENV', 'GREETING', 'hi')], ...commands };
type Ready = Extract<BuildResult, { status: 'ready' }>;

/** A template with a server, as it is built and used on a node. */
export function serverTemplate({ build, test }: BuildNode) {
  const { protocol } = test.node;
  const run = async (sandboxId: string, command: string) => (await runInSandbox(protocol, sandboxId, command)).stdout;
  return {
    async built(changes = {}): Promise<{ result: Ready; log: string }> {
      const { result, log } = await build({ ...template, ...changes });
      if (result.status !== 'ready') throw new Error(`${result.message}\n${log}`);
      return { result, log };
    },
    requestFor({ state, started }: Ready, changes: Partial<CreateSandbox> = {}): CreateSandbox {
      return test.request({ image: { ...imageOf(state), ...commands, ...(started && { started }) }, ...changes });
    },
    run,
    /** Without waiting: whoever gets a sandbox has its server answering. */
    drawnBy: async (sandboxId: string) => (await run(sandboxId, 'curl -s localhost:8000')).trim(),
  };
}
