/** The documentation, made from the interface description: an introduction, then every endpoint by chapter. */
import { isErrorCode } from '../shared/errors.ts';
import { introduction } from './docs-introduction.ts';
import { html, prose, type Html } from './html.ts';
import { renderPage, rootOf } from './layout.ts';
import { chaptersOf, fieldsOf, boundsOf, typeOf, type Chapter, type Endpoint, type Field, type OpenApi, type Operation, type Schema } from './openapi.ts';

export interface DocsPage {
  readonly baseUrl: string;
  readonly openapi: object;
}

interface Context {
  readonly openapi: OpenApi;
  readonly root: string;
}

export function docsPage({ baseUrl, openapi }: DocsPage): string {
  const context: Context = { openapi: openapi as OpenApi, root: rootOf(baseUrl) };
  const chapters = chaptersOf(context.openapi);
  const body = html`
<div class="docs">
<nav class="contents" aria-label="Endpoints">${contents(chapters)}</nav>
<div class="docs-text">
<h1>Documentation</h1>
<p class="lead">Version ${context.openapi.info.version}. The same as data: <a href="${context.root}/openapi.json">openapi.json</a>.</p>
${introduction(baseUrl)}
${chapters.map((chapter) => renderChapter(context, chapter))}
</div>
</div>`;
  return renderPage({ title: 'Documentation', baseUrl, body, current: 'docs', wide: true });
}

function contents(chapters: readonly Chapter[]): Html {
  const guide = [['primitives', 'Four primitives'], ['quick-start', 'Quick start'], ['credentials', 'Credentials'], ['conventions', 'Conventions']] as const;
  return html`
<details open>
<summary>Contents</summary>
<p class="contents-chapter">Guide</p>
<ul>${guide.map(([id, text]) => html`<li><a href="#${id}">${text}</a></li>`)}</ul>
${chapters.map(({ name, endpoints }) => html`
<p class="contents-chapter">${name}</p>
<ul>${endpoints.map(({ id, method, path }) => html`<li><a href="#${id}">${verb(method)} <span class="path">${breakable(path)}</span></a></li>`)}</ul>`)}
</details>`;
}

function verb(method: string): Html {
  return html`<span class="verb verb-${method.toLowerCase()}">${method}</span>`;
}

/** A path that may break after its slashes. */
function breakable(path: string): Html {
  return html`${path.split('/').map((part, index) => (index === 0 ? part : html`/<wbr>${part}`))}`;
}

function renderChapter(context: Context, { name, description, endpoints }: Chapter): Html {
  return html`
<section class="chapter" aria-label="${name}">
<h2>${name}</h2>
${description && html`<p>${prose(description)}</p>`}
${endpoints.map((endpoint) => renderEndpoint(context, endpoint))}
</section>`;
}

function renderEndpoint(context: Context, { id, method, path, operation }: Endpoint): Html {
  return html`
<article class="endpoint" id="${id}" aria-labelledby="${id}-title">
<h3 id="${id}-title"><a class="anchor" href="#${id}">${verb(method)} <code class="path" translate="no">${breakable(path)}</code></a>${operation.deprecated && html` <span class="place">retired</span>`}</h3>
${operation.summary && html`<p>${prose(operation.summary)}</p>`}
${operation.description && operation.description !== operation.summary && html`<p>${prose(operation.description)}</p>`}
<p class="who"><span class="label">Who may call</span> ${callers(context, operation)}</p>
${fieldTable(`Request of ${method} ${path}`, requestFields(context, operation), 'Sent')}
${renderBodyType(operation)}
${renderAnswers(context, `${method} ${path}`, operation)}
${renderCodes(context, operation)}
</article>`;
}

function callers({ openapi }: Context, { security }: Operation): string {
  if (!security || security.length === 0) return 'anyone';
  const schemes = openapi.components?.securitySchemes;
  const names = security.map((alternative) => Object.keys(alternative).map((name) => schemes?.[name]?.description ?? name).join(' with ') || 'anyone');
  return [...new Set(names)].join(' · ');
}

function requestFields({ openapi }: Context, { parameters = [], requestBody }: Operation): Field[] {
  const outside = parameters.map((parameter): Field => ({
    name: parameter.name, place: parameter.in, required: parameter.required === true, description: parameter.description ?? parameter.schema?.description,
    type: typeOf(openapi, parameter.schema ?? {}), bounds: boundsOf(openapi, parameter.schema ?? {}),
  }));
  const [place, schema] = Object.entries({ body: 'application/json', form: 'multipart/form-data' })
    .map(([name, type]) => [name, requestBody?.content?.[type]?.schema] as const).find(([, found]) => found) ?? [];
  const inside = schema ? fieldsOf(openapi, schema).map((field) => ({ ...field, place })) : [];
  return [...outside, ...inside];
}

function renderBodyType({ requestBody }: Operation): Html | undefined {
  const types = Object.keys(requestBody?.content ?? {}).filter((type) => type !== 'application/json');
  return types.length === 0 ? undefined : html`<p class="who"><span class="label">Body</span> ${types.map((type) => html`<code>${type}</code> `)}</p>`;
}

function renderAnswers({ openapi }: Context, title: string, { responses = {} }: Operation): Html[] {
  return Object.entries(responses).filter(([status]) => /^[23]/.test(status)).map(([status, { description, content = {} }]) => {
    const [type, media] = Object.entries(content)[0] ?? [];
    const schema: Schema | undefined = type === 'application/json' ? media?.schema : undefined;
    return html`
<p class="who"><span class="label">Answer</span> <strong>${status}</strong> ${type !== undefined && type !== 'application/json' && html`<code>${type}</code>`} ${description}</p>
${schema && fieldTable(`Answer ${status} of ${title}`, fieldsOf(openapi, schema), 'Returned')}`;
  });
}

function fieldTable(label: string, fields: readonly Field[], heading: string): Html | undefined {
  if (fields.length === 0) return undefined;
  return html`
<div class="scroll" tabindex="0" role="region" aria-label="${label}">
<table>
<thead><tr><th scope="col">${heading}</th><th scope="col">Type</th><th scope="col">Bounds and meaning</th></tr></thead>
<tbody>${fields.map(fieldRow)}</tbody>
</table>
</div>`;
}

function fieldRow(field: Field): Html {
  const { name, type, bounds, description } = field;
  return html`
<tr><th scope="row"><code translate="no">${name}</code>${fieldNotes(field)}</th>
<td>${type}</td><td>${description && prose(description)}${description && bounds && html`<br>`}${bounds && html`<span class="bounds">${bounds}</span>`}</td></tr>`;
}

/** Of what is sent, what must be; of what is returned, what may be absent. */
function fieldNotes({ place, required }: Field): Html {
  if (place === undefined) return html`${!required && html` <span class="place">optional</span>`}`;
  return html`${required && html` <span class="needed">required</span>`}${place !== 'body' && html` <span class="place">${place}</span>`}`;
}

function renderCodes({ root }: Context, operation: Operation): Html | undefined {
  const named = Object.values(operation.responses ?? {}).flatMap((response) => response['x-error-codes'] ?? []);
  const codes = [...new Set(named)].filter(isErrorCode);
  if (codes.length === 0) return undefined;
  return html`
<p class="who"><span class="label">Errors</span> ${codes.map((code) => html`<a class="code-link" href="${root}/problems/${code}"><code translate="no">${code}</code></a> `)}</p>`;
}
