/** The OpenID Connect provider: where a sign-in goes, and what came of it. The only file of this service that talks to the internet. */
import * as client from 'openid-client';
import { fail, Failure } from '../../../shared/errors.ts';
import type { Flow } from '../domain/oidc-flow.ts';
import { carefulFetch, deadlineMs, isLoopback } from './careful-fetch.ts';

export interface OidcSettings {
  readonly issuer: URL;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly scopes: string;
  /** Where the provider sends the browser back to. */
  readonly redirectUri: string;
}

/** What the provider vouches for. */
export interface Identity {
  readonly issuer: string;
  readonly subject: string;
  readonly email: string | undefined;
  readonly emailVerified: boolean;
}

/** What a browser brought back from the provider. */
export interface Returned {
  readonly code?: string | undefined;
  readonly state?: string | undefined;
  readonly iss?: string | undefined;
  readonly error?: string | undefined;
}

export type Provider = ReturnType<typeof makeProvider>;

/** What the provider publishes about itself is read again after this. */
const metadataMs = 600_000;

export function makeProvider(settings: OidcSettings) {
  let metadata: { found: Promise<client.ServerMetadata>; until: number } | undefined;

  /** The provider as it describes itself; a failure is not kept. */
  function describe(): Promise<client.ServerMetadata> {
    if (metadata && metadata.until > Date.now()) return metadata.found;
    const found = discover(settings);
    metadata = { found, until: Date.now() + metadataMs };
    found.catch(() => { metadata = undefined; });
    return found;
  }

  async function configure(): Promise<client.Configuration> {
    const described = await describe();
    const config = new client.Configuration(described, settings.clientId, {}, clientAuth(described, settings.clientSecret));
    for (const extend of extensions(settings.issuer)) extend(config);
    // The signature of an ID token is checked although it came from the provider itself: one of a shared-secret algorithm, or of none, is refused.
    client.enableNonRepudiationChecks(config);
    config[client.customFetch] = carefulFetch();
    return config;
  }

  return {
    /** The address at the provider to which a browser goes to sign in. @throws oidc_provider_failed */
    async authorizationUrl(flow: Flow): Promise<string> {
      const config = await configure();
      return client.buildAuthorizationUrl(config, {
        redirect_uri: settings.redirectUri,
        scope: settings.scopes,
        response_type: 'code',
        state: flow.state,
        nonce: flow.nonce,
        code_challenge: await client.calculatePKCECodeChallenge(flow.codeVerifier),
        code_challenge_method: 'S256',
      }).href;
    },

    /** Exchanges what came back for who it is. @throws invalid_oidc_callback, invalid_oidc_token, oidc_sign_in_refused, oidc_provider_failed */
    async identify(returned: Returned, flow: Flow): Promise<Identity> {
      const config = await configure();
      // Promise (RFC 9207): an answer of another provider is not taken for this one's.
      if (returned.iss !== undefined && returned.iss !== config.serverMetadata().issuer) throw fail('invalid_oidc_callback');
      try {
        return await exchange(config, addressOf(settings.redirectUri, returned), flow);
      } catch (error) {
        throw translate(error);
      }
    },
  };
}

async function exchange(config: client.Configuration, address: URL, flow: Flow): Promise<Identity> {
  const tokens = await client.authorizationCodeGrant(config, address, {
    expectedState: flow.state, expectedNonce: flow.nonce, pkceCodeVerifier: flow.codeVerifier, idTokenExpected: true,
  });
  const claims = tokens.claims()!;
  const { email, email_verified: verified } = claims['email'] === undefined && config.serverMetadata().userinfo_endpoint
    ? await client.fetchUserInfo(config, tokens.access_token, claims.sub)
    : claims;
  return { issuer: claims.iss, subject: claims.sub, email: typeof email === 'string' ? email : undefined, emailVerified: verified === true };
}

async function discover({ issuer, clientId }: OidcSettings): Promise<client.ServerMetadata> {
  try {
    const options = { [client.customFetch]: carefulFetch(), execute: extensions(issuer), timeout: deadlineMs / 1_000 };
    return (await client.discovery(issuer, clientId, undefined, undefined, options)).serverMetadata();
  } catch (error) {
    throw fail('oidc_provider_failed', {}, error);
  }
}

/** Plain http is for a provider on this very machine. */
const extensions = (issuer: URL) => (issuer.protocol === 'http:' && isLoopback(issuer) ? [client.allowInsecureRequests] : []);

/** HTTP Basic, which every provider has to know, unless it says that it wants the secret in the body. */
function clientAuth({ token_endpoint_auth_methods_supported: methods }: client.ServerMetadata, secret: string): client.ClientAuth {
  return methods?.includes('client_secret_post') && !methods.includes('client_secret_basic') ? client.ClientSecretPost(secret) : client.ClientSecretBasic(secret);
}

function addressOf(redirectUri: string, returned: Returned): URL {
  const address = new URL(redirectUri);
  for (const name of ['code', 'state', 'iss', 'error'] as const) {
    const value = returned[name];
    if (value !== undefined) address.searchParams.set(name, value);
  }
  return address;
}

/** Codes of answers that came and cannot be believed. */
const unbelievable = new Set([
  'OAUTH_INVALID_RESPONSE', 'OAUTH_JWT_CLAIM_COMPARISON_FAILED', 'OAUTH_JWT_TIMESTAMP_CHECK_FAILED', 'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED',
  'OAUTH_KEY_SELECTION_FAILED', 'OAUTH_UNSUPPORTED_OPERATION', 'OAUTH_JWT_USERINFO_EXPECTED',
]);

function translate(error: unknown): Failure {
  if (error instanceof Failure) return error;
  const cause = (error as { cause?: unknown }).cause;
  if (cause instanceof Failure) return cause;
  if (error instanceof client.AuthorizationResponseError) return fail('oidc_sign_in_refused', { detail: 'The provider did not let you sign in.' }, error);
  // The code was used before, is too old, or was made for another sign-in.
  if (error instanceof client.ResponseBodyError && error.error === 'invalid_grant') return fail('invalid_oidc_callback', {}, error);
  if (unbelievable.has((error as { code?: string }).code ?? '')) return fail('invalid_oidc_token', {}, error);
  return fail('oidc_provider_failed', {}, error);
}
