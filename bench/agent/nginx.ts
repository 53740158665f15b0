import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cpuMsOf, familyOf } from '../measure/processes.ts';

/** nginx that serves one file with sendfile: the upper limit to compare downloads with. */
type FileServer = AsyncDisposable & { url: string; cpuMs(): number };

/** Undefined if nginx isn't installed. */
export async function startNginx(file: string, port: number): Promise<FileServer | undefined> {
  const nginx = Bun.which('nginx', { PATH: `${process.env['PATH']}:/usr/sbin` });
  if (!nginx) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'atoll-bench-nginx-'));
  symlinkSync(file, join(folder, 'big'));
  const configuration = join(folder, 'nginx.conf');
  writeFileSync(
    configuration,
    `daemon off; user root; worker_processes 1; pid ${folder}/pid; error_log stderr; events {}
     http { access_log off; sendfile on; tcp_nopush on; client_body_temp_path ${folder}/b; proxy_temp_path ${folder}/p; fastcgi_temp_path ${folder}/f;
       uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s; server { listen 127.0.0.1:${port}; root ${folder}; } }`,
  );
  const child = Bun.spawn([nginx, '-c', configuration, '-p', folder], { stdout: 'ignore', stderr: 'ignore' });
  const url = `http://127.0.0.1:${port}/big`;
  while (
    !(await fetch(url, { method: 'HEAD' }).then(
      response => response.ok,
      () => false,
    ))
  ) {
    if (child.exitCode !== null) throw new Error('nginx did not start');
    await Bun.sleep(10);
  }
  return {
    url,
    cpuMs: () => familyOf(child.pid).reduce((sum, pid) => sum + cpuMsOf(pid), 0),
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await child.exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
