/** A program of the test that runs elsewhere (in a network namespace) and takes commands. */
export type Remote = {
  call<T>(operation: string, ...args: unknown[]): Promise<T>;
  /** Ends the program by closing its channel, and waits for its end. */
  stop(): Promise<void>;
};

type Request = { id: number; operation: string; args: unknown[] };
type Answer = { id: number; result?: unknown; error?: { message: string; code?: string } };

const startTimeoutMs = 120_000;
const stopTimeoutMs = 60_000;

/** Starts a program that calls `serveRemote`, and resolves once it is ready. */
export async function startRemote(argv: string[]): Promise<Remote> {
  const pending = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  const ready = Promise.withResolvers<void>();
  const child = Bun.spawn(argv, {
    stdio: ['ignore', 'inherit', 'inherit'],
    ipc(message: Answer) {
      if (message.id === 0) return message.error ? ready.reject(new Error(message.error.message)) : ready.resolve();
      const call = pending.get(message.id);
      pending.delete(message.id);
      if (message.error) call?.reject(Object.assign(new Error(message.error.message), { code: message.error.code }));
      else call?.resolve(message.result);
    },
    onExit() {
      ready.reject(new Error(`${argv.at(-1)} did not start`));
      for (const call of pending.values()) call.reject(new Error(`${argv.at(-1)} has ended`));
    },
  });
  const timer = setTimeout(() => ready.reject(new Error(`${argv.at(-1)} did not start in time`)), startTimeoutMs);
  await ready.promise.finally(() => clearTimeout(timer));
  let lastId = 0;
  const call = <T>(operation: string, ...args: unknown[]) =>
    new Promise<T>((resolve, reject) => {
      const id = ++lastId;
      pending.set(id, { resolve: value => resolve(value as T), reject });
      child.send({ id, operation, args } satisfies Request);
    });
  return {
    call,
    async stop() {
      const killer = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs);
      await call('stop').catch(() => {});
      child.disconnect();
      await child.exited;
      clearTimeout(killer);
    },
  };
}

/** Serves `operations` to the program that started this one. `stop` is called first once that one is done or gone. */
export async function serveRemote(
  start: () => Promise<{ operations: Record<string, (...args: never[]) => unknown>; stop(): Promise<void> }>,
): Promise<void> {
  const send = (answer: Answer) => process.send?.(answer);
  const failure = (error: unknown) => ({
    message: error instanceof Error ? error.message : String(error),
    code: (error as { code?: string }).code ?? 'unknown',
  });
  try {
    const { operations, stop } = await start();
    let stopped: Promise<void> | undefined;
    const stopOnce = () => (stopped ??= stop());
    process.on('message', async (request: Request) => {
      try {
        const operation = request.operation === 'stop' ? stopOnce : operations[request.operation];
        if (!operation) throw new Error(`no operation ${request.operation}`);
        send({ id: request.id, result: await (operation as (...args: unknown[]) => unknown)(...request.args) });
      } catch (error) {
        send({ id: request.id, error: failure(error) });
      }
    });
    process.on('disconnect', () => void stopOnce().finally(() => process.exit(0)));
    send({ id: 0 });
  } catch (error) {
    send({ id: 0, error: failure(error) });
    process.exitCode = 1;
    process.disconnect?.();
  }
}
