import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runToEnd } from '../../support/process.ts';

const days = '2';

async function openssl(folder: string, ...args: string[]): Promise<void> {
  const { exitCode, stderr } = await runToEnd(['openssl', ...args], { cwd: folder });
  if (exitCode !== 0) throw new Error(`openssl ${args.join(' ')}: ${stderr}`);
}

const writeKey = (folder: string, name: string) =>
  openssl(folder, 'ecparam', '-genkey', '-name', 'prime256v1', '-noout', '-out', `${name}.key`);

/** Makes the key and certificate `name`, signed by the authority in `folder`. */
async function issue(folder: string, name: string, subject: string, names?: string): Promise<void> {
  await writeKey(folder, name);
  await openssl(folder, 'req', '-new', '-key', `${name}.key`, '-subj', subject, '-out', `${name}.csr`);
  writeFileSync(join(folder, `${name}.ext`), names === undefined ? '' : `subjectAltName=${names}\n`);
  const by = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', days, '-extfile', `${name}.ext`];
  await openssl(folder, 'x509', '-req', '-in', `${name}.csr`, ...by, '-out', `${name}.crt`);
}

function writeConfig(folder: string, user: string, server: string): void {
  writeFileSync(
    join(folder, `${user}.conf`),
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'c', cluster: { server, 'certificate-authority': join(folder, 'ca.crt') } }],
      users: [
        {
          name: user,
          user: { 'client-certificate': join(folder, `${user}.crt`), 'client-key': join(folder, `${user}.key`) },
        },
      ],
      contexts: [{ name: 'x', context: { cluster: 'c', user } }],
      'current-context': 'x',
    }),
  );
}

/** Makes the authority of a Kubernetes at `address`, its certificates, and the kubeconfig `admin.conf`, in `folder`. */
export async function writeCertificates(folder: string, server: string, address: string): Promise<void> {
  mkdirSync(folder, { mode: 0o700 });
  await writeKey(folder, 'ca');
  const authority = ['req', '-x509', '-new', '-key', 'ca.key', '-subj', '/CN=kubernetes', '-days', days];
  await openssl(folder, ...authority, '-out', 'ca.crt');
  const api = ['kubernetes', 'kubernetes.default', 'kubernetes.default.svc', 'localhost'].map(name => `DNS:${name}`);
  const names = [...api, 'IP:127.0.0.1', `IP:${address}`, 'IP:10.96.0.1'].join(',');
  await issue(folder, 'api', '/CN=kube-apiserver', names);
  await issue(folder, 'admin', '/O=system:masters/CN=admin');
  await writeKey(folder, 'sa');
  await openssl(folder, 'ec', '-in', 'sa.key', '-pubout', '-out', 'sa.pub');
  writeConfig(folder, 'admin', server);
}

/** Makes the certificate and kubeconfig of a machine: `kubelet-NAME.crt`, `.key`, `.conf`. */
export async function writeKubeletCertificate(
  folder: string,
  server: string,
  { name, address }: { name: string; address: string },
): Promise<void> {
  const user = `kubelet-${name}`;
  await issue(folder, user, `/O=system:nodes/CN=system:node:${name}`, `DNS:${name},IP:${address}`);
  writeConfig(folder, user, server);
}
