// Written by `python -m tests.front.protocol` from the views and intents in Python: do not edit.
import type { Growing, MarkdownValue } from "./runtime/growing.js";

/** HTML that Python has made and cleaned. */
export type SafeHtml = string & { readonly safe: unique symbol };

export interface BadgeView {
  text: string;
  tone: "plain" | "warn" | "error";
}

export interface BallotView {
  status: string;
  turn: number;
  pair: PairView | null;
  choices: (string)[];
  results: SafeHtml;
}

export interface BlockView {
  key: string;
  kind: "text" | "thinking" | "code";
  label: string;
  isOpen: boolean;
  body: Growing<MarkdownValue>;
}

export interface CallView {
  id: string;
  transcript: SafeHtml;
  request: RawView;
  response: RawView;
  events: EventsView;
  timeline: TimelineView | null;
}

export interface EventView {
  key: string;
  time: string;
  text: string;
}

export interface EventsView {
  filter: string;
  summary: string;
  rows: (EventView)[];
  hasEarlier: boolean;
  hasLater: boolean;
}

export interface FactView {
  key: string;
  value: string;
  note: string;
}

export interface InspectorView {
  call: CallView;
}

export interface PairView {
  prompt: SafeHtml;
  left: SafeHtml;
  right: SafeHtml;
}

export interface PaneView {
  key: string;
  head: string;
  isRunning: boolean;
  hasStop: boolean;
  status: string;
  elapsed: Growing<number>;
  badges: (BadgeView)[];
  prompts: (PromptView)[];
  blocks: (BlockView)[];
  failure: string;
  notes: (string)[];
  figures: string;
}

export interface ProgressView {
  title: string;
  summary: string;
  percent: number;
  done: number;
  failed: number;
  running: number;
  facts: (FactView)[];
  errors: string;
  head: (string)[];
  rows: (RowView)[];
  more: string;
  note: string;
  isStopping: boolean;
}

export interface PromptView {
  label: string;
  text: string;
}

export interface RawView {
  lines: (string)[];
  text: string;
}

export interface RepliesView {
  panes: (PaneView)[];
}

export interface RowView {
  key: string;
  cells: (string)[];
}

export interface RunStateView {
  progress: ProgressView | null;
  result: SafeHtml;
}

export interface TimelineView {
  url: string;
  alt: string;
}

export interface BallotIntents {
  choose: { choice: "left" | "right" | "tie" | "skip" | "undo" | "results"; turn: number };
}

export interface InspectorIntents {
  draw_timeline: { dark: boolean };
  filter_events: { text: string };
  read_part: { part: "request" | "response" | "events" };
  turn_events: { step: 1 | -1 };
}

export interface ReplyViewIntents {
  stop: { pane?: string };
}

export interface RunViewIntents {
  stop: {};
}
