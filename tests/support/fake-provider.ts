/** A provider of the tests' own that answers as it is told, for what no real one would say. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, SignJWT, UnsecuredJWT, type JWTPayload } from 'jose';
import { clientFacts } from './real-provider.ts';

/** What an ID token says, made from what an honest one would. `alg` chooses how it is signed. */
export interface Lie {
  readonly claims?: (honest: JWTPayload) => JWTPayload;
  readonly alg?: 'RS256' | 'HS256' | 'none' | 'another key' | 'ES256';
  /** Answers the token request with this instead. */
  readonly token?: { status: number; headers?: Record<string, string>; body: unknown } | 'silence';
  /** Answers the userinfo request with this. */
  readonly userinfo?: object;
}

export async function startFakeProvider() {
  const [key, other, curve] = await Promise.all([generateKeyPair('RS256', { extractable: true }), generateKeyPair('RS256'), generateKeyPair('ES256', { extractable: true })]);
  let lie: Lie = {};
  const asked: { path: string; form: URLSearchParams; authorization: string | undefined }[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { pathname } = new URL(request.url!, 'http://fake');
    asked.push({ path: pathname, form: new URLSearchParams(Buffer.concat(chunks).toString()), authorization: request.headers.authorization });
    const send = (status: number, body: unknown, headers: Record<string, string> = {}) => response.writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(typeof body === 'string' ? body : JSON.stringify(body));
    if (pathname === '/.well-known/openid-configuration') return send(200, metadata());
    if (pathname === '/jwks') return send(200, { keys: [{ ...(await exportJWK(key.publicKey)), kid: 'one', alg: 'RS256', use: 'sig' }] });
    if (pathname === '/me') return send(200, lie.userinfo ?? {});
    if (pathname !== '/token') return send(404, {});
    if (lie.token === 'silence') return undefined;
    if (lie.token) return send(lie.token.status, lie.token.body, lie.token.headers);
    return send(200, { access_token: 'x', token_type: 'Bearer', id_token: await idToken() });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  let nonce = '';

  const metadata = () => ({
    issuer, authorization_endpoint: `${issuer}/auth`, token_endpoint: `${issuer}/token`, jwks_uri: `${issuer}/jwks`, userinfo_endpoint: `${issuer}/me`,
    response_types_supported: ['code'], subject_types_supported: ['public'], id_token_signing_alg_values_supported: ['RS256', 'HS256', 'none', 'ES256'],
  });

  async function idToken(): Promise<string> {
    const now = Math.floor(Date.now() / 1_000);
    const honest = { iss: issuer, aud: clientFacts.id, sub: 'somebody', nonce, iat: now, exp: now + 60, email: 'somebody@example.com', email_verified: true };
    const claims = lie.claims?.(honest) ?? honest;
    switch (lie.alg ?? 'RS256') {
      case 'none': return new UnsecuredJWT(claims).encode();
      case 'HS256': return new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid: 'one' }).sign(Buffer.from(clientFacts.secret));
      case 'another key': return new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: 'one' }).sign(other.privateKey);
      case 'ES256': return new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid: 'one' }).sign(curve.privateKey);
      case 'RS256': return new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: 'one' }).sign(key.privateKey);
    }
  }

  return {
    issuer,
    asked,
    /** How the next sign-ins are answered. */
    tell(next: Lie) { lie = next; },
    /** Takes note of the request that a browser would bring, as an honest provider does. */
    note(authorization: string) { nonce = new URL(authorization).searchParams.get('nonce')!; },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
