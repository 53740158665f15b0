import type { Target } from './engine/target.ts';
import { agentAnswers, agentMessages } from './targets/agent-answers.ts';
import { fileHeaders, gzipBodies, multipartBodies } from './targets/agent-files.ts';
import { agentLogLines, logMasks, outputLines } from './targets/agent-log.ts';
import {
  headerPlaceholders,
  metadataFilters,
  pageTokens,
  requestBodies,
  requestQueries,
  routePaths,
  templateNames,
  webTokens,
} from './targets/api.ts';
import { compressedArchives, layerImages, tarArchives } from './targets/archives.ts';
import {
  buildOutput,
  dockerfiles,
  dockerfileWords,
  heredocs,
  imageManifests,
  imageNames,
  registryChallenges,
} from './targets/builds.ts';
import { clientHellos } from './targets/client-hello.ts';
import { connectEnvelopes, connectHeaders, connectMessages } from './targets/connect.ts';
import { dnsAnswers, dnsQueries } from './targets/dns.ts';
import { relayedRequests, relayedResponses, socksAnswers } from './targets/egress.ts';
import { networkNames, sandboxHosts } from './targets/hosts.ts';
import { http2Requests, http2Responses } from './targets/http2.ts';
import { chunkedBodies } from './targets/http-bodies.ts';
import { requestHeads, responseHeads } from './targets/http-heads.ts';
import { rewrittenRequests, rewrittenResponses } from './targets/http-rewrites.ts';
import { checkpointImages, mountTables, netlinkAnswers, protobufMessages } from './targets/kernel-answers.ts';

/** All our parsers that read what strangers write. */
export const targets: readonly Target[] = [
  // edge
  requestHeads,
  responseHeads,
  chunkedBodies,
  http2Requests,
  http2Responses,
  rewrittenRequests,
  rewrittenResponses,
  sandboxHosts,
  // agent
  connectEnvelopes,
  connectMessages,
  connectHeaders,
  multipartBodies,
  gzipBodies,
  fileHeaders,
  logMasks,
  outputLines,
  // egress proxy
  dnsQueries,
  dnsAnswers,
  clientHellos,
  relayedRequests,
  relayedResponses,
  socksAnswers,
  networkNames,
  // API
  routePaths,
  requestBodies,
  requestQueries,
  metadataFilters,
  pageTokens,
  templateNames,
  headerPlaceholders,
  webTokens,
  dockerfiles,
  heredocs,
  // node
  dockerfileWords,
  buildOutput,
  imageNames,
  registryChallenges,
  imageManifests,
  tarArchives,
  layerImages,
  compressedArchives,
  agentAnswers,
  agentMessages,
  agentLogLines,
  netlinkAnswers,
  protobufMessages,
  checkpointImages,
  mountTables,
];
