/** Traces: OpenTelemetry spans from HTTP through NATS to SQL. Recorded only where the standard variables name a collector; without them a step passes its parent on. */
import { context, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, type Attributes, type Context, type Span } from '@opentelemetry/api';
import { z } from 'zod';
import { errorCodeOf, errorTable } from './errors.ts';

/** What decides whether there are traces. The other variables of OpenTelemetry (headers, sampler, resource, batches) its SDK reads by itself. */
export const tracingSettings = {
  OTEL_SDK_DISABLED: z.enum(['true', 'false']).optional().describe('`true` records no traces, whatever else is set'),
  OTEL_TRACES_EXPORTER: z.enum(['otlp', 'none']).optional().describe('`none` records no traces; `otlp` does without an address as well, to the usual one of this machine'),
  OTEL_EXPORTER_OTLP_ENDPOINT: z.url().optional().describe('The collector of traces; the SDK reads the other variables of OpenTelemetry by itself'),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: z.url().optional().describe('The whole address to send traces to, in place of `OTEL_EXPORTER_OTLP_ENDPOINT`'),
  OTEL_SERVICE_NAME: z.string().optional().describe('The name of the service in traces; `aex-<service>` when absent'),
};

type Settings = z.output<z.ZodObject<typeof tracingSettings>>;

/** Begins to record and export spans where the settings ask for it. Answers how to stop: what is recorded is sent then, within seconds. */
export async function startTracing(service: string, settings: Settings): Promise<() => Promise<void>> {
  if (!isWanted(settings)) return async () => undefined;
  // Loaded only where they are used: together they cost a tenth of a second of every start.
  const [{ NodeTracerProvider, BatchSpanProcessor }, { OTLPTraceExporter }, { defaultResource, detectResources, envDetector, resourceFromAttributes }] = await Promise.all([
    import('@opentelemetry/sdk-trace-node'), import('@opentelemetry/exporter-trace-otlp-proto'), import('@opentelemetry/resources'),
  ]);
  const own = resourceFromAttributes({ 'service.name': settings.OTEL_SERVICE_NAME ?? `aex-${service}`, 'service.namespace': 'asset-exchange' });
  const provider = new NodeTracerProvider({
    resource: defaultResource().merge(own).merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  });
  provider.register();
  return () => provider.shutdown();
}

function isWanted(settings: Settings): boolean {
  if (settings.OTEL_SDK_DISABLED === 'true' || settings.OTEL_TRACES_EXPORTER === 'none') return false;
  return (settings.OTEL_EXPORTER_OTLP_ENDPOINT ?? settings.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? settings.OTEL_TRACES_EXPORTER) !== undefined;
}

/** One step of a request that is under way. */
export interface Step {
  /** W3C trace context to send along; undefined when there is neither a recorded step nor a parent. */
  readonly traceparent: string | undefined;
  /** Runs work of which further steps are children. */
  within<T>(work: () => T): T;
  /** Ends the step; a second time changes nothing. A refusal is an outcome; what is our own fault, or nobody's, is an error. */
  end(error?: unknown, attributes?: Attributes): void;
}

export interface StepFacts {
  readonly name: string;
  readonly kind: 'server' | 'client';
  /** The trace context that came with the request; the step that this runs within when absent. */
  readonly traceparent?: string | undefined;
  /** Names and counts only: no token, no name of a file, no address. */
  readonly attributes?: Attributes;
}

const kinds = { server: SpanKind.SERVER, client: SpanKind.CLIENT } as const;

export function beginStep({ name, kind, traceparent, attributes = {} }: StepFacts): Step {
  const parent = traceparent === undefined ? context.active() : contextOfHeader(traceparent);
  const span = trace.getTracer('asset-exchange').startSpan(name, { kind: kinds[kind], attributes }, parent);
  let isOver = false;
  return {
    traceparent: headerOf(span),
    within: (work) => context.with(trace.setSpan(parent, span), work),
    end(error, more) {
      if (isOver) return;
      isOver = true;
      if (more) span.setAttributes(more);
      if (error !== undefined) recordError(span, error);
      span.end();
    },
  };
}

/** Runs work as one step. */
export async function inStep<T>(facts: StepFacts, work: (step: Step) => Promise<T>): Promise<T> {
  const step = beginStep(facts);
  try {
    const result = await step.within(() => work(step));
    step.end();
    return result;
  } catch (error) {
    step.end(error);
    throw error;
  }
}

/** The trace's id of a W3C header, for logs. */
export function traceIdOf(traceparent: string): string {
  return traceparent.slice(3, 35);
}

function contextOfHeader(traceparent: string): Context {
  const [, traceId, spanId, flags] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(traceparent) ?? [];
  if (!traceId || !spanId || !flags) return ROOT_CONTEXT;
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true });
}

function headerOf(span: Span): string | undefined {
  const { traceId, spanId, traceFlags } = span.spanContext();
  if (/^0*$/.test(traceId)) return undefined;
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

/** Only a code crosses into a trace: a message of somebody else's may hold what a trace must not. */
function recordError(span: Span, error: unknown): void {
  const code = errorCodeOf(error);
  span.setAttribute('error.type', code);
  if (errorTable[code].status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
}
