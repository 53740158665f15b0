import { rmSync } from 'node:fs';
import { AtollError } from '../../base/error.ts';

/** The stages at which CRIU stops. The process is the first one of the sandbox, in the host's numbers. */
export type Stages = {
  /** While a sandbox is restored: its namespaces are there, its sockets and processes are not. */
  'setup-namespaces'?(pid: number): Promise<void>;
  /** Everything is in place, and nothing of it runs yet. */
  'post-restore'?(pid: number): Promise<void>;
  /** Every process stands where it will continue, and is released next, even if this fails. */
  'pre-resume'?(pid: number): Promise<void>;
  /** The dump is complete, and the processes are stopped; if this fails they run on. */
  'post-dump'?(): Promise<void>;
};

/** Handles the stages of a run of CRIU, until disposal. */
type StageListener = AsyncDisposable & {
  path: string;
  /** The error that a stage threw. */
  failure(): unknown;
  /** Settles when no stage is being carried out: a stage runs on even if the process that asked for it is gone. */
  settled(): Promise<void>;
};

const lineBytesMax = 64;

/** Listens for the action script of one run of CRIU (native/snapshot-program.c) and carries out its stages. */
export function listenForStages(path: string, stages: Stages): StageListener {
  let failure: unknown;
  let underWay: Promise<unknown> = Promise.resolve();
  rmSync(path, { force: true });
  const carryOut = async (line: string): Promise<'y' | 'n'> => {
    const [stage, pid] = line.trim().split(' ');
    try {
      if (stage === 'setup-namespaces' || stage === 'post-restore' || stage === 'pre-resume')
        await stages[stage]?.(Number(pid));
      else if (stage === 'post-dump') await stages[stage]?.();
      else throw new AtollError('internal', `CRIU reports an unknown stage: ${stage}`);
      return 'y';
    } catch (error) {
      failure = error;
      return 'n';
    }
  };
  const server = Bun.listen<{ text: string }>({
    unix: path,
    socket: {
      open: socket => void (socket.data = { text: '' }),
      data(socket, bytes) {
        socket.data.text += bytes.toString('latin1');
        if (socket.data.text.length > lineBytesMax) return void socket.terminate();
        if (!socket.data.text.endsWith('\n')) return;
        const stage = carryOut(socket.data.text);
        underWay = Promise.all([underWay, stage]);
        void stage.then(answer => {
          socket.write(answer);
          socket.end();
        });
      },
    },
  });
  return {
    path,
    failure: () => failure,
    settled: () => underWay.then(() => {}),
    async [Symbol.asyncDispose]() {
      server.stop(true);
      rmSync(path, { force: true });
    },
  };
}
