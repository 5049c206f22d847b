/** Owners and their sessions (interface chapter: Authentication). */
import { z } from 'zod';
import { defineContracts } from '../contract.ts';
import * as fields from './fields.ts';

const owner = z.strictObject({ id: z.string(), email: z.string(), admin: z.boolean() });

/** Long enough that guessing is hopeless, short enough to hash. */
const newPassword = fields.text(256).min(12, 'must have at least 12 characters');

/** A password to be checked: whatever somebody types. */
const givenPassword = z.string().max(1_024);

/** The token is shown here and nowhere else. */
const openedSession = z.strictObject({ owner, token: z.string(), expiresAt: fields.dateTime });

export const owners = defineContracts({
  createOwner: {
    service: 'policy',
    summary: 'Make another owner; only an owner marked admin may',
    accepts: ['owner_session'],
    required: 'owner_auth_required',
    http: { method: 'POST', path: '/api/owner/accounts', status: 201 },
    input: z.strictObject({ email: z.email('must be an e-mail address').max(320), password: newPassword, admin: z.boolean().default(false) }),
    output: z.strictObject({ owner }),
    errors: ['owner_auth_required', 'invalid_owner_credential', 'forbidden_origin', 'forbidden', 'owner_email_taken'],
  },
  signIn: {
    service: 'policy',
    summary: 'Sign in with e-mail and password; sets the session cookie and shows the token for scripts',
    accepts: [],
    http: { method: 'POST', path: '/api/owner/session', status: 201, handled: true, rate: 'auth' },
    input: z.strictObject({ email: fields.text(320), password: givenPassword }),
    output: openedSession,
    errors: ['invalid_owner_credential', 'forbidden_origin', 'rate_limited'],
  },
  readSession: {
    service: 'policy',
    summary: 'Who is signed in',
    accepts: ['owner_session'],
    required: 'owner_auth_required',
    http: { method: 'GET', path: '/api/owner/session', status: 200 },
    input: z.strictObject({}),
    output: z.strictObject({ owner, expiresAt: fields.dateTime }),
    errors: ['owner_auth_required', 'invalid_owner_credential'],
  },
  signOut: {
    service: 'policy',
    summary: 'Sign out: the session ends everywhere it is used',
    accepts: ['owner_session'],
    required: 'owner_auth_required',
    http: { method: 'DELETE', path: '/api/owner/session', status: 200, handled: true, rate: 'auth' },
    input: z.strictObject({}),
    output: z.strictObject({ signedOut: z.literal(true) }),
    errors: ['owner_auth_required', 'invalid_owner_credential', 'forbidden_origin'],
  },
  signOutEverywhere: {
    service: 'policy',
    summary: 'Sign out everywhere: every session of the owner ends, this one too',
    accepts: ['owner_session'],
    required: 'owner_auth_required',
    http: { method: 'DELETE', path: '/api/owner/sessions', status: 200, handled: true, rate: 'auth' },
    input: z.strictObject({}),
    output: z.strictObject({ ended: z.int().describe('How many sessions there were') }),
    errors: ['owner_auth_required', 'invalid_owner_credential', 'forbidden_origin'],
  },
  changePassword: {
    service: 'policy',
    summary: 'Change the password; every session of the owner ends, and a new one is opened for the caller',
    accepts: ['owner_session'],
    required: 'owner_auth_required',
    http: { method: 'POST', path: '/api/owner/password', status: 200, handled: true, rate: 'auth' },
    input: z.strictObject({ currentPassword: givenPassword, newPassword }),
    output: openedSession,
    errors: ['owner_auth_required', 'invalid_owner_credential', 'forbidden_origin', 'invalid_password', 'password_not_set', 'rate_limited'],
  },
  startOidc: {
    service: 'policy',
    summary: 'Sign in at the OpenID Connect provider of this deployment: sends the browser there',
    accepts: [],
    http: { method: 'GET', path: '/api/owner/oidc/start', status: 302, handled: true, rate: 'auth' },
    input: z.strictObject({}),
    output: z.strictObject({ location: z.string(), flow: z.string(), seconds: z.int() }),
    errors: ['route_not_found', 'oidc_provider_failed'],
    deadlineMs: 10_000,
  },
  finishOidc: {
    service: 'policy',
    summary: 'Where the provider sends the browser back to: sets the session cookie and goes on to the start page',
    accepts: [],
    http: { method: 'GET', path: '/api/owner/oidc/callback', status: 302, query: ['code', 'state', 'iss', 'error'], handled: true, rate: 'auth' },
    input: z.strictObject({
      flow: z.string().max(512).optional(),
      code: z.string().max(4_096).optional(),
      state: z.string().max(512).optional(),
      iss: z.string().max(2_048).optional(),
      error: z.string().max(256).optional(),
    }),
    output: openedSession,
    errors: ['route_not_found', 'invalid_oidc_callback', 'invalid_oidc_token', 'oidc_sign_in_refused', 'oidc_provider_failed', 'owner_email_taken'],
    deadlineMs: 10_000,
  },
});
