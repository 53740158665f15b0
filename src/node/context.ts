import type { Gate } from '../base/gate.ts';
import type { Log } from '../base/log.ts';
import type { SandboxExit } from '../protocol/node.ts';
import type { Driver } from './drivers/driver.ts';
import type { Layout } from './layout.ts';
import type { Helper } from './native/helper.ts';
import type { NetworkNamespace } from './native/netns.ts';
import type { Egress } from './network/egress/egress.ts';
import type { Disks } from './rootfs/disks.ts';
import type { Layers } from './rootfs/layers.ts';
import type { Pool } from './sandbox/pool.ts';
import type { Records, SandboxRecord } from './sandbox/record.ts';
import type { Slots } from './sandbox/slots.ts';

/** A sandbox that runs on this node. */
export type Running = {
  record: SandboxRecord;
  namespace: NetworkNamespace;
  /** Settles when all its processes have ended. */
  ended: Promise<void>;
  /** The network update under way; settles in any case. */
  updating?: Promise<void>;
  /** Set once the sandbox is being removed; settles when nothing is left. */
  removal?: Promise<void>;
};

/** What the parts of a node share. Made by the composition in start.ts, passed to each part. */
export type NodeContext = {
  layout: Layout;
  log: Log;
  helper: Helper;
  driver: Driver;
  disks: Disks;
  layers: Layers;
  records: Records;
  slots: Slots;
  /** Starts of blank sandboxes go through here. */
  starts: Gate;
  egress: Egress;
  /** Absent: every create starts its own processes. */
  pool?: Pool;
  /** By sandbox ID. */
  running: Map<string, Running>;
  /** Creates under way, by execution ID. */
  creating: Map<string, Promise<Running>>;
  exitListeners: Set<(exit: SandboxExit) => void>;
  mtu: number;
};
