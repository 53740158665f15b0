import { jsonOption, parseArguments } from '../terminal/arguments.ts';
import type { Command } from '../terminal/command.ts';
import { jsonText } from '../terminal/table.ts';
import type { PlatformRequest } from '../connection/platform-request.ts';

/** `atoll dashboard`: how to sign in. `request` is the operator's; `origin` is where browsers reach the platform. */
export function dashboardCommand(request: PlatformRequest, origin: () => string): Command {
  return {
    name: 'dashboard',
    usage: '[--user USER_ID] [--json]',
    summary: 'Prints a link that signs in at the dashboard, once and for 15 minutes: the operator, or a user',
    async run(args, terminal) {
      const { values } = parseArguments(args, { user: { type: 'string' }, ...jsonOption });
      const body = values.user === undefined ? {} : { userID: values.user };
      const link = (await request('POST', '/admin/sign-in-links', body)) as { path: string };
      const url = `${origin()}${link.path}`;
      terminal.out(values.json ? jsonText({ ...link, url }) : `${url}\n`);
      return 0;
    },
  };
}
