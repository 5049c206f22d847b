/** A real OpenID Connect provider (`oidc-provider`) on this machine, with the accounts that a test names. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Provider from 'oidc-provider';
import type { Browser, Step } from './cookie-jar.ts';

export const clientFacts = { id: 'exchange', secret: 'a-secret-of-the-tests-and-of-nobody-else' };

export interface ProviderAccount {
  readonly email?: string;
  readonly email_verified?: boolean;
}

/** Starts the provider. `redirectUri` is known only once the exchange has started. */
export async function startRealProvider(accounts: ReadonlyMap<string, ProviderAccount>) {
  let handle: ReturnType<Provider['callback']> | undefined;
  const server = createServer((request, response) => void handle?.(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    issuer,
    admit(redirectUri: string) {
      const provider = new Provider(issuer, {
        clients: [{ client_id: clientFacts.id, client_secret: clientFacts.secret, redirect_uris: [redirectUri], grant_types: ['authorization_code'], response_types: ['code'] }],
        claims: { openid: ['sub'], email: ['email', 'email_verified'] },
        findAccount: (_context: unknown, accountId: string) => ({ accountId, claims: async () => ({ sub: accountId, ...accounts.get(accountId) }) }),
        pkce: { required: () => true },
        cookies: { keys: ['a key of the tests'] },
      });
      handle = provider.callback();
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Goes through the provider's pages as somebody, from the address it begins at to where it sends the browser back. */
export async function signInAtProvider(browser: Browser, start: string, issuer: string, accountId: string): Promise<string> {
  let step: Step = await browser.go(start);
  for (let count = 0; count < 12; count += 1) {
    if (step.location !== undefined) {
      if (!step.location.startsWith(`${issuer}/`)) return step.location;
      step = await browser.go(step.location);
      continue;
    }
    // A page with a form: who you are, then whether you agree.
    const action = /action="([^"]+)"/.exec(step.text)?.[1];
    const prompt = /name="prompt" value="(\w+)"/.exec(step.text)?.[1];
    if (!action || !prompt) throw new Error(`the provider answered ${step.status} ${step.text.slice(0, 2_000)}`);
    step = await browser.go(action, prompt === 'login' ? { prompt, login: accountId, password: 'any' } : { prompt });
  }
  throw new Error('the provider sends the browser round in circles');
}
