/** What one sign-in at the provider must remember: a secret that the browser keeps, from which all else follows (RFC 6749, RFC 7636, OpenID Connect Core). */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { hashSecret, openToken, sealToken } from '../../../shared/tokens.ts';

/** Seconds that somebody may take at the provider. */
export const flowTtl = 600;

const sealed = z.strictObject({ secret: z.string().length(43), expires: z.number() });
const prefix = 'flow';

/** The values of a flow. `id` names it in the database and tells nothing about the others. */
export interface Flow {
  readonly id: string;
  readonly state: string;
  readonly nonce: string;
  readonly codeVerifier: string;
}

/** The values that follow from a flow's secret: 43 characters each. */
export function flowOf(secret: string): Flow {
  const derive = (purpose: string) => createHmac('sha256', secret).update(purpose).digest('base64url');
  return { id: hashSecret(secret), state: derive('state'), nonce: derive('nonce'), codeVerifier: derive('code verifier') };
}

/** The token that the browser keeps as a cookie. `now` in milliseconds since 1970. */
export function sealFlow(secret: string, now: number, keys: readonly Buffer[]): string {
  return sealToken(prefix, { secret, expires: now + flowTtl * 1_000 }, keys);
}

/** The flow of a token, while it lasts. */
export function openFlow(token: string, now: number, keys: readonly Buffer[]): Flow | undefined {
  const { data } = sealed.safeParse(openToken(prefix, token, keys));
  return data && data.expires > now ? flowOf(data.secret) : undefined;
}

/** Whether a state that came back is the flow's. */
export function isStateOf(flow: Flow, state: string | undefined): boolean {
  const [own, given] = [Buffer.from(flow.state), Buffer.from(state ?? '')];
  return own.length === given.length && timingSafeEqual(own, given);
}

/** Whether an e-mail may sign in: any when no domains are named, otherwise only those of exactly these. */
export function isOfDomains(email: string, domains: readonly string[]): boolean {
  return domains.length === 0 || domains.includes(email.slice(email.lastIndexOf('@') + 1).toLowerCase());
}
