// A real OpenID provider (oidc-provider) on a free port of loopback. People are who they claim to be at its login page.
// The first argument is `{ redirectUri, people: { [login]: claims } }`; it prints its issuer.
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const { redirectUri, people } = JSON.parse(process.argv[2]);
const server = createServer((request, response) => provider.callback()(request, response));
await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;
const provider = new Provider(issuer, {
  clients: [{ client_id: 'atoll', client_secret: 'a secret of the tests: %+', redirect_uris: [redirectUri] }],
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
  findAccount: (_context, login) => ({ accountId: login, claims: () => ({ sub: login, ...people[login] }) }),
});
process.stdout.write(`${issuer}\n`);
