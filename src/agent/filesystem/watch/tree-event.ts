/** The type of an event, as the wire spells it. */
export type EventType =
  | 'EVENT_TYPE_CREATE'
  | 'EVENT_TYPE_WRITE'
  | 'EVENT_TYPE_REMOVE'
  | 'EVENT_TYPE_RENAME'
  | 'EVENT_TYPE_CHMOD';

/** `name` is relative to the watched directory, which itself is `.`; one character per byte. */
export type TreeEvent = { name: string; type: EventType };
