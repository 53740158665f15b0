import { parseArguments } from '../terminal/arguments.ts';
import type { Command } from '../terminal/command.ts';
import { numberOf } from '../terminal/number.ts';
import { pairsOf } from '../terminal/pairs.ts';
import type { PlatformRequest } from '../connection/platform-request.ts';
import { jsonText } from '../terminal/table.ts';

/** `atoll sandbox create`. */
export function createCommand(request: PlatformRequest): Command {
  return {
    name: 'sandbox create',
    usage: '[--timeout SECONDS] [--env NAME=VALUE]... [--metadata NAME=VALUE]... [--auto-pause] [--json] [TEMPLATE]',
    summary: 'Makes a sandbox, of base unless another template is named, and prints its ID',
    async run(args, terminal) {
      const { values, positionals } = parseArguments(
        args,
        {
          timeout: { type: 'string' },
          env: { type: 'string', multiple: true, short: 'e' },
          metadata: { type: 'string', multiple: true },
          'auto-pause': { type: 'boolean' },
          json: { type: 'boolean' },
        },
        ['[TEMPLATE]'],
      );
      const sandbox = (await request('POST', '/v2/sandboxes', {
        templateID: positionals[0] ?? 'base',
        ...(values.timeout !== undefined && { timeout: numberOf('--timeout', values.timeout) }),
        ...(values.env && { envVars: pairsOf('--env', values.env) }),
        ...(values.metadata && { metadata: pairsOf('--metadata', values.metadata) }),
        ...(values['auto-pause'] && { autoPause: true }),
      })) as { sandboxID: string };
      terminal.out(values.json ? jsonText(sandbox) : `${sandbox.sandboxID}\n`);
      return 0;
    },
  };
}
