import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runToEnd } from '../../support/process.ts';

const days = '2';

/** Makes the authority, certificates and kubeconfigs (`NAME.conf`) of a Kubernetes at `address` in `folder`. */
export async function writeCertificates(folder: string, server: string, address: string): Promise<void> {
  mkdirSync(folder, { mode: 0o700 });
  const openssl = async (...args: string[]) => {
    const { exitCode, stderr } = await runToEnd(['openssl', ...args], { cwd: folder });
    if (exitCode !== 0) throw new Error(`openssl ${args.join(' ')}: ${stderr}`);
  };
  const key = (name: string) => openssl('ecparam', '-genkey', '-name', 'prime256v1', '-noout', '-out', `${name}.key`);
  const issue = async (name: string, subject: string, names?: string) => {
    await key(name);
    await openssl('req', '-new', '-key', `${name}.key`, '-subj', subject, '-out', `${name}.csr`);
    writeFileSync(join(folder, `${name}.ext`), names === undefined ? '' : `subjectAltName=${names}\n`);
    const by = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', days, '-extfile', `${name}.ext`];
    await openssl('x509', '-req', '-in', `${name}.csr`, ...by, '-out', `${name}.crt`);
  };
  await key('ca');
  await openssl('req', '-x509', '-new', '-key', 'ca.key', '-subj', '/CN=kubernetes', '-days', days, '-out', 'ca.crt');
  const api = ['kubernetes', 'kubernetes.default', 'kubernetes.default.svc', 'localhost'].map(name => `DNS:${name}`);
  await issue('api', '/CN=kube-apiserver', [...api, 'IP:127.0.0.1', `IP:${address}`, 'IP:10.96.0.1'].join(','));
  await issue('kubelet', '/O=system:nodes/CN=system:node:machine', `DNS:machine,IP:${address}`);
  await issue('admin', '/O=system:masters/CN=admin');
  await key('sa');
  await openssl('ec', '-in', 'sa.key', '-pubout', '-out', 'sa.pub');
  for (const user of ['admin', 'kubelet'])
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
