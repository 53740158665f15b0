import type { Gate } from '../base/gate.ts';
import type { Log } from '../base/log.ts';
import type { SandboxNetwork } from '../protocol/node.ts';
import type { Builder } from './builder/builder.ts';
import type { Drivers } from './drivers/drivers.ts';
import type { Layout, Slot } from './layout.ts';
import type { SandboxLogs } from './logs/sandbox-logs.ts';
import type { Helper } from './native/helper.ts';
import type { NetworkNamespace } from './native/netns.ts';
import type { Egress } from './network/egress/egress.ts';
import type { Disks } from './rootfs/disks.ts';
import type { Layers } from './rootfs/layers.ts';
import type { OpenSnapshot } from './snapshot/restore.ts';
import type { Exits } from './sandbox/exits.ts';
import type { Memory } from './sandbox/memory.ts';
import type { Pool } from './sandbox/pool.ts';
import type { PausedRecord, Records, RunningRecord } from './sandbox/record.ts';
import type { Releases } from './sandbox/releases.ts';
import type { Slots } from './sandbox/slots.ts';
import type { Space } from './space/space.ts';
import type { Volumes } from './volumes/volumes.ts';

/** A sandbox that runs on this node. */
export type Running = {
  record: RunningRecord;
  namespace: NetworkNamespace;
  /** What may leave the sandbox, where it is certain that just this is in force. */
  policyInForce?: SandboxNetwork;
  /** Settles when all its processes have ended. */
  ended: Promise<void>;
  /** The change under way (network, pause, snapshot), see in-turn.ts; settles in any case. */
  changing?: Promise<void>;
  /** Set once the sandbox is being removed; settles when nothing is left, or when a pause under way came first. */
  removal?: Promise<'removed' | 'paused'>;
};

/** A sandbox that is paused on this node. */
export type Paused = {
  record: PausedRecord;
  /** Its processes, which stand still for a while: let go, they are the sandbox again. */
  standing?: Standing;
  /** The change under way (the end of its pause, a resume); settles in any case. */
  changing?: Promise<void>;
};

/** A sandbox that is on this node and out of reach: its files stay as they are until an operator decides. */
export type Unreadable = {
  sinceMs: number;
  reason: string;
  /** Where its processes may still be. */
  slot?: Slot;
  /** As it was noted; undefined where that can't be read. */
  record?: RunningRecord;
};

export type Standing = {
  slot: Slot;
  namespace: NetworkNamespace;
  ended: Promise<void>;
  /** Ends them when they have stood for long enough. */
  timer: Timer;
};

/** What the parts of a node share. Made by the composition in start.ts, passed to each part. */
export type NodeContext = {
  layout: Layout;
  log: Log;
  helper: Helper;
  /** The helper's executable: started with other arguments, it is small programs for single tasks. */
  helperBinary: string;
  /** What reads strangers' bytes. */
  builder: Builder;
  drivers: Drivers;
  /** What isolates a sandbox that was started, whichever it is. */
  driver: Drivers['bySlot'];
  disks: Disks;
  layers: Layers;
  volumes: Volumes;
  space: Space;
  records: Records;
  memory: Memory;
  /** How long the processes of a paused sandbox stand before they are ended; 0: they do not. */
  standMs: number;
  /** The present copy of the agent. */
  agentDir: string;
  /** Earlier copies that the helper shows, for sandboxes that go on from their memory. */
  agentsShown: Set<string>;
  slots: Slots;
  /** What ended sandboxes still hold of the host. */
  releases: Releases;
  /** Starts of blank sandboxes go through here. */
  starts: Gate;
  /** Programs that remove what sandboxes have left: they take their time, and not all of it. */
  removals: Gate;
  egress: Egress;
  logs: SandboxLogs;
  /** What processes write is put into the logs. */
  logOutput: boolean;
  /** Absent: every create starts its own processes. */
  pool?: Pool;
  /** By sandbox ID. */
  running: Map<string, Running>;
  /** By sandbox ID; no sandbox is both running and paused. */
  paused: Map<string, Paused>;
  /** By sandbox ID: those of which nobody can say what they are, or that could not be taken over. */
  unreadable: Map<string, Unreadable>;
  /** Those of the paused ones whose processes stand still, the longest first. */
  standing: Set<Paused>;
  /** Creates and resumes under way, by the execution ID that begins. */
  creating: Map<string, Promise<Running>>;
  /** Kills that somebody waits for, by execution ID. */
  killing: Set<string>;
  /** Checks of snapshots under way, by snapshot ID. */
  openingSnapshots: Map<string, Promise<OpenSnapshot>>;
  exits: Exits;
  mtu: number;
};
