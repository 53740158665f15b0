import { parseSync, Visitor } from 'oxc-parser';
import type { SourceFile } from '../../tidy/source-files.ts';

/** A small fault that is put into one file. */
export type Mutant = {
  path: string;
  /** What kind of fault it is: `condition`, `operator`, `limit`, `order`, `undo`, `call`. */
  kind: string;
  /** The line in the file, from 1, and the position in UTF-16 units from the file's start. */
  line: number;
  offset: number;
  /** The original and its replacement, shortened to a line. */
  change: string;
  /** The whole file with the fault. */
  text: string;
};

type Span = { start: number; end: number };
type Statement = Span & { type: string; expression?: Span & { type: string } };
type Edit = Span & { kind: string; by: string };

const operators: Record<string, string> = {
  '===': '!==',
  '!==': '===',
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '-': '+',
  '*': '/',
  '&&': '||',
  '||': '&&',
};
/** Times are none of them: a test that saw one three times as long would assert a time. */
const limitNames = /(?:(?<!Ms)(?:Max|Min)|Limit)$/;
/** Calls that only report something: nothing else depends on them. */
const reports = /^(?:await )?(?:[\w.?]*\b(?:log|trace|span|console|meter)\b)[.?]/;

/** All faults that could be put into a file, in the order of their places. */
export function mutantsOf({ path, text }: SourceFile): Mutant[] {
  return editsOf(path, text)
    .sort((a, b) => a.start - b.start || a.end - b.end)
    .map(({ start, end, kind, by }) => ({
      path,
      kind,
      offset: start,
      line: text.slice(0, start).split('\n').length,
      change: `${inOneLine(text.slice(start, end))} → ${inOneLine(by) || 'nothing'}`,
      text: text.slice(0, start) + by + text.slice(end),
    }));
}

function editsOf(path: string, text: string): Edit[] {
  const edits: Edit[] = [];
  const undoing: Span[] = [];
  const within = ({ start, end }: Span) => undoing.some(span => span.start <= start && end <= span.end);
  const infix = (node: { left: Span; right: Span; operator: string }) => {
    const by = operators[node.operator];
    const at = text.indexOf(node.operator, node.left.end);
    if (by && at < node.right.start) edits.push({ start: at, end: at + node.operator.length, kind: 'operator', by });
  };
  const block = (statements: readonly unknown[]) => {
    const steps = statements as readonly Statement[];
    for (const [index, step] of steps.entries()) {
      if (!isCall(step, text)) continue;
      edits.push({ start: step.start, end: step.end, kind: within(step) ? 'undo' : 'call', by: '' });
      const next = steps[index + 1];
      if (!next || !isCall(next, text)) continue;
      const [first, between, second] = [
        text.slice(step.start, step.end),
        text.slice(step.end, next.start),
        text.slice(next.start, next.end),
      ];
      edits.push({ start: step.start, end: next.end, kind: 'order', by: second + between + first });
    }
  };
  const { program, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path} can't be parsed: ${errors[0]?.message}`);
  new Visitor({
    BinaryExpression: infix,
    LogicalExpression: infix,
    IfStatement: ({ test }) => {
      // The fault keeps the condition's reads, so that types are narrowed as before: otherwise the compiler refuses
      // most of these.
      const condition = `(${text.slice(test.start, test.end)})`;
      for (const by of [`${condition} || true`, `${condition} && false`])
        edits.push({ ...spanOf(test), kind: 'condition', by });
    },
    VariableDeclarator: ({ id, init }) => {
      if (id.type !== 'Identifier' || !limitNames.test(id.name) || !init) return;
      edits.push({ ...spanOf(init), kind: 'limit', by: `(${text.slice(init.start, init.end)}) * 3` });
    },
    TryStatement: ({ handler, finalizer }) => {
      if (handler) undoing.push(handler.body);
      if (finalizer) undoing.push(finalizer);
    },
    CallExpression: ({ callee, arguments: [undo] }) => {
      const defers = callee.type === 'MemberExpression' && text.slice(callee.object.end, callee.end) === '.defer';
      if (defers && undo) undoing.push(undo);
    },
    Program: ({ body }) => block(body),
    BlockStatement: ({ body }) => block(body),
  }).visit(program);
  return edits;
}

const spanOf = ({ start, end }: Span): Span => ({ start, end });

function isCall({ type, expression, start, end }: Statement, text: string): boolean {
  if (type !== 'ExpressionStatement' || !expression) return false;
  const called = expression.type === 'CallExpression' || expression.type === 'AwaitExpression';
  return called && !reports.test(text.slice(start, end));
}

function inOneLine(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim();
  return line.length > 70 ? `${line.slice(0, 69)}…` : line;
}
