import type { Log } from '../base/telemetry/log.ts';
import { startSpanExport, type SpanExport } from '../base/telemetry/span-export.ts';
import { platformVersion } from '../base/version.ts';
import type { Settings } from './settings/settings.ts';

/** Sends requests' spans where the settings say; undefined if they name no place. */
export function spanExportOf(settings: Settings, log: Log): SpanExport | undefined {
  const { otlpEndpoint, otlpTracesEndpoint, otlpHeaders, serviceName } = settings;
  const url = otlpTracesEndpoint ?? (otlpEndpoint && `${otlpEndpoint.replace(/\/+$/, '')}/v1/traces`);
  return url === undefined
    ? undefined
    : startSpanExport({ url, headers: otlpHeaders ?? {}, serviceName, serviceVersion: platformVersion, log });
}
