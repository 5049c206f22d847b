/** Every contract that the services serve, for what looks at all of them: the mount, the interface description, the tests. */
import { agents } from './agents.ts';
import { audit } from './audit.ts';
import { grants } from './grants.ts';
import { owners } from './owners.ts';
import { plans } from './plans.ts';
import { shares } from './shares.ts';
import { transfers } from './transfers.ts';
import { uploads } from './uploads.ts';

export const policyContracts = { ...plans, ...shares, ...grants, ...agents, ...owners };
export const storageContracts = { ...uploads, ...transfers };
export const auditContracts = { ...audit };

export const allContracts = { ...policyContracts, ...storageContracts, ...auditContracts };
