import {
  Activity,
  Boxes,
  Building2,
  Camera,
  ChartNoAxesColumn,
  Gauge,
  HardDrive,
  History,
  KeyRound,
  Layers,
  Lock,
  ScrollText,
  Server,
  SlidersHorizontal,
  Stethoscope,
  Unplug,
  UserRound,
  Users,
  Webhook,
} from 'lucide-react';
import type { LucideIcon } from 'lucide-react';

/** A page that the rail and the palette link to. */
export type Destination = { to: string; name: string; icon: LucideIcon; key?: string };

/** The pages of a team, and those of the operator. `key` follows `g` on the keyboard. */
export const destinations: { team: Destination[]; account: Destination[]; operator: Destination[] } = {
  team: [
    { to: '/sandboxes', name: 'Sandboxes', icon: Boxes, key: 's' },
    { to: '/templates', name: 'Templates', icon: Layers, key: 't' },
    { to: '/snapshots', name: 'Snapshots', icon: Camera, key: 'c' },
    { to: '/volumes', name: 'Volumes', icon: HardDrive, key: 'v' },
    { to: '/secrets', name: 'Secrets', icon: Lock, key: 'x' },
    { to: '/events', name: 'Events', icon: Activity, key: 'e' },
    { to: '/usage', name: 'Usage', icon: ChartNoAxesColumn, key: 'u' },
    { to: '/keys', name: 'API keys', icon: KeyRound, key: 'k' },
    { to: '/members', name: 'Members', icon: Users, key: 'm' },
    { to: '/audit', name: 'Audit', icon: History, key: 'i' },
    { to: '/webhooks', name: 'Webhooks', icon: Webhook, key: 'w' },
  ],
  account: [{ to: '/account', name: 'Account', icon: UserRound, key: 'a' }],
  operator: [
    { to: '/operator', name: 'Overview', icon: Gauge, key: 'o' },
    { to: '/operator/nodes', name: 'Nodes', icon: Server, key: 'n' },
    { to: '/operator/teams', name: 'Teams and users', icon: Building2 },
    { to: '/operator/leftovers', name: 'Left over', icon: Unplug },
    { to: '/operator/audit', name: 'Audit', icon: ScrollText },
    { to: '/operator/doctor', name: 'Doctor', icon: Stethoscope, key: 'd' },
    { to: '/operator/settings', name: 'Settings', icon: SlidersHorizontal },
  ],
};
