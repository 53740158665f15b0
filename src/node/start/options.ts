import type { Log } from '../../base/telemetry/log.ts';
import type { NodeBuildProtocol } from '../../protocol/build.ts';
import type { DraftCarrier, PauseCarrier, SnapshotCarrier, VolumeCarrier } from '../../protocol/cluster.ts';
import type { ExecutionRef, NodeProtocol, SandboxResources } from '../../protocol/node.ts';
import type { DriverName } from '../../protocol/driver.ts';
import type { BuildSettings } from '../builds/compose.ts';
import type { Layers } from '../layers/store.ts';
import type { EgressSettings } from '../network/egress/settings.ts';
import type { Space } from '../space/space.ts';

/** What a node needs to start. */
export type NodeOptions = {
  nodeId: string;
  dataDir: string;
  /** The built native helper. */
  helperBinary: string;
  /** The built agent's directory. */
  agentDir: string;
  /** The built builder's directory. */
  builderDir: string;
  /** Resolvers that sandboxes use. */
  nameservers: string[];
  /** The operator's choices about traffic out of sandboxes. */
  egress?: EgressSettings;
  /**
   * How many standby sandboxes wait to be taken: `size` always, and `roomySize` (if that is more) while the host has
   * room for them; and the resources that they are made with.
   */
  pool: { size: number; roomySize?: number; resources: SandboxResources };
  builds: BuildSettings;
  /** Where set-up has put CRIU, which keeps the memory of sandboxes; absent: no memory can be kept. */
  criuDir?: string;
  /** Where set-up has put gVisor's runsc; absent: no sandbox can run on it. */
  runscDir?: string;
  /** The driver of sandboxes whose template asks for no other; default crun. */
  driver?: DriverName;
  /**
   * How long a paused sandbox whose memory was kept stays frozen, so that it can be thawed at once; 0: not at all.
   * Default 20 s.
   */
  frozenMs?: number;
  /** Retention of a sandbox's samples, hours; also applied after it is gone. Default 24. */
  metricsHours?: number;
  /**
   * The logs of sandboxes: bytes of all together (default 1 GiB), and whether they include what processes write
   * (default: yes).
   */
  logs?: { bytesMax?: number; output?: boolean };
  /** Bytes of the disk that only the platform itself may take. Default 2 GiB. */
  diskReserveBytes?: number;
  /** How fast one disk may write continuously, bytes a second; 0: no limit. Default 96 MiB. */
  diskWriteBytesPerSecond?: number;
  /**
   * Throws `unavailable` while the node can't know whether what was asked for is still wanted; called right before
   * processes of a sandbox run. Absent: it always is.
   */
  requireLease?: () => void;
  log: Log;
  /** Called when the native helper has died: nothing can be started or removed any more, and the platform must end. */
  onHelperLost(): void;
};

/** A running node. */
export type Node = {
  protocol: NodeProtocol;
  builds: NodeBuildProtocol;
  /** Paused sandboxes, for other machines. */
  pauses: PauseCarrier;
  /** Drafts of sandboxes that are being moved, for other machines. */
  drafts: DraftCarrier;
  /** The memory of snapshots, for other machines. */
  snapshots: SnapshotCarrier;
  /** The content of volumes, for other machines and the store. */
  volumeCopies: VolumeCarrier;
  /** The installation's number on this machine. */
  installation: number;
  helperPid: number;
  /** For sockets and other files that describe the running platform. Gone after a reboot. */
  runDir: string;
  layers: Layers;
  /** The room on the disk of the data directory. */
  space: Pick<Space, 'reserve'>;
  /** At the start: running and paused sandboxes that were taken over, and slots that were cleaned up. */
  found: { adopted: number; removed: number; paused: number };
  /** Ends the node's own processes. Sandboxes run on and are adopted by the next start. */
  stop(): Promise<void>;
  /**
   * Ends every running sandbox, removes everything of the installation from the host except its data, and stops.
   * Paused sandboxes and those that are set aside stay, unless `all` is set (the default). Answers what was ended.
   */
  down(options?: { all: boolean }): Promise<ExecutionRef[]>;
};
