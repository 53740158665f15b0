import { parseArguments } from '../terminal/arguments.ts';
import type { Command } from '../terminal/command.ts';
import type { PlatformRequest } from '../connection/platform-request.ts';

/** `atoll dashboard`: how to sign in. `request` is the operator's; `origin` is where the platform is reached. */
export function dashboardCommand(request: PlatformRequest, origin: () => string): Command {
  return {
    name: 'dashboard',
    usage: '[--user USER_ID]',
    summary: 'Prints a link that signs in at the dashboard, once and for 15 minutes: the operator, or a user',
    async run(args, terminal) {
      const { values } = parseArguments(args, { user: { type: 'string' } });
      const body = values.user === undefined ? {} : { userID: values.user };
      const { path } = (await request('POST', '/admin/sign-in-links', body)) as { path: string };
      terminal.out(`${origin()}${path}\n`);
      return 0;
    },
  };
}
