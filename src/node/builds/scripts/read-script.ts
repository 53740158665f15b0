import ensureUser from './ensure-user.sh' with { type: 'text' };
import provision from './provision.sh' with { type: 'text' };
import refusals from './refusals.sh' with { type: 'text' };

const scripts = { 'ensure-user.sh': ensureUser, 'provision.sh': provision, 'refusals.sh': refusals } as const;

/** The text of a shell script of this folder. Scripts run in build sandboxes, in whatever shell the image has. */
export const readScript = (name: keyof typeof scripts): string => scripts[name];
