/** Owners and their sessions (interface chapter: Authentication). */
import { z } from 'zod';
import { defineContracts } from '../contract.ts';
import * as fields from './fields.ts';

const owner = z.strictObject({ id: z.string(), email: z.string(), admin: z.boolean() });

/** Long enough that guessing is hopeless, short enough to hash. */
const newPassword = fields.text(256).min(12, 'must have at least 12 characters');

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
    input: z.strictObject({ email: fields.text(320), password: z.string().max(1_024) }),
    output: z.strictObject({ owner, token: z.string(), expiresAt: fields.dateTime }),
    errors: ['invalid_owner_credential', 'forbidden_origin'],
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
});
