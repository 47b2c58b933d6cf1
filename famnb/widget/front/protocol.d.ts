// Written by `python -m tests.front.protocol` from the views and intents in Python: do not edit.
import type { Growing, MarkdownValue } from "./runtime/growing.js";

/** HTML that Python has made and cleaned. */
export type SafeHtml = string & { readonly safe: unique symbol };

export interface BadgeView {
  text: string;
  tone: "plain" | "warn" | "error";
}

export interface BlockView {
  key: string;
  kind: "text" | "thinking" | "code";
  label: string;
  isOpen: boolean;
  body: Growing<MarkdownValue>;
}

export interface BoxView {
  key: string;
  help: string;
  isOn: boolean;
}

export interface CallView {
  id: string;
  transcript: SafeHtml;
  request: RawView;
  response: RawView;
  events: EventsView;
  timeline: TimelineView | null;
}

export interface CodeView {
  kinds: (string)[];
  kind: string;
  note: string;
  html: SafeHtml;
  isCell: boolean;
}

export interface ControlView {
  kind: "model" | "choice" | "switch" | "integer" | "number" | "text" | "json";
  help: string;
  choices: (string)[];
  isClosed: boolean;
  hint: string;
  default: number | null;
  low: number | null;
  high: number | null;
  takesText: boolean;
}

export interface EndpointView {
  key: string;
  title: string;
  path: string;
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

export interface FieldView {
  key: string;
  control: ControlView;
  text: string;
  fault: string;
}

export interface FormView {
  endpoint: string;
  endpoints: (EndpointView)[];
  groups: (GroupView)[];
}

export interface GroupView {
  key: string;
  boxes: (BoxView)[];
  fields: (FieldView)[];
}

export interface InspectorView {
  call: CallView;
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

export interface PictureView {
  key: string;
  label: string;
  url: string;
}

export interface PromptBoxView {
  text: string;
  pictures: (PictureView)[];
  estimate: string;
  estimateHelp: string;
  fault: string;
  hasConversation: boolean;
  remarks: (string)[];
  variables: VariablesView;
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

export interface TimelineView {
  url: string;
  alt: string;
}

export interface VariablesView {
  names: (string)[];
  rows: ({ [name: string]: string })[];
  row: number;
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
