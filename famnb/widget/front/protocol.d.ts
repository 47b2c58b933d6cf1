// Written by `python -m tests.front.protocol` from the views and intents in Python: do not edit.
import type { Growing, MarkdownValue } from "./runtime/growing.js";

/** HTML that Python has made and cleaned. */
export type SafeHtml = string & { readonly safe: unique symbol };

export interface AxesView {
  url: string;
  left: number;
  top: number;
  width: number;
  height: number;
}

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

export interface BoardPaneView {
  key: string;
  label: string;
  form: FormView;
  system: string;
  prompt: string;
  remarks: (string)[];
}

export interface BoardView {
  panes: (BoardPaneView)[];
  shared: (FieldView)[];
  system: string;
  prompt: PromptBoxView;
  rounds: (RoundView)[];
  isBusy: boolean;
  isMarked: boolean;
  code: CodeView | null;
}

export interface BoxView {
  key: string;
  help: string;
  isOn: boolean;
}

export interface CallGroupView {
  key: string;
  isFilter: boolean;
  colour: string;
  cycle: number;
  cells: (string)[];
}

export interface CallRowView {
  key: string;
  when: string;
  prompt: string;
  facts: string;
}

export interface CallView {
  id: string;
  transcript: SafeHtml;
  request: RawView;
  response: RawView;
  eventCount: number;
  timeline: TimelineView | null;
}

export interface CellView {
  key: string;
  label: string;
  pane: PaneView | null;
  meters: { [name: string]: string };
  isWinner: boolean;
  version: number;
  versionCount: number;
}

export interface ChartView {
  key: string;
  kind: "bars" | "lines";
  top: number;
  ticks: ([number, string])[];
  values: ((number | null)[])[];
  words: (string)[];
}

export interface CodeView {
  kinds: (string)[];
  kind: string;
  note: string;
  html: SafeHtml;
  isCell: boolean;
}

export interface ColumnView {
  name: string;
  kind: "word" | "number" | "status" | "text";
  isMinor: boolean;
  order: "" | "ascending" | "descending";
}

export interface ComposerView {
  service: string;
  model: string;
  form: FormView;
  system: string;
  prompt: PromptBoxView;
  turns: (TurnView)[];
  isBusy: boolean;
  code: CodeView | null;
  history: HistoryView | null;
  presets: PresetsView | null;
}

export interface DashboardView {
  filters: (FilterView)[];
  isReading: boolean;
  empty: string;
  overview: OverviewView | null;
  call: CallView | null;
}

export interface ExplorerView {
  title: string;
  empty: string;
  plot: PlotView | null;
  pointed: PointView | null;
  spans: [[number, number], [number, number]] | null;
  hidden: (number)[];
  chosen: RowsView;
  opened: string | null;
  call: CallView | null;
}

export interface FieldView {
  key: string;
  control: FormField;
  text: string;
  fault: string;
}

export interface FigureView {
  key: string;
  value: string;
  note: string;
  link: string;
  callId: string;
}

export interface FilterView {
  key: string;
  label: string;
  value: string;
  choices: (string)[];
}

export interface FormField {
  name: string;
  kind: "model" | "choice" | "switch" | "integer" | "number" | "text" | "json";
  help: string;
  choices: (string)[];
  isClosed: boolean;
  hint: string;
  takesText: boolean;
  group: string;
}

export interface FormView {
  endpoint: string;
  endpoints: (string)[];
  help: string;
  groups: (GroupView)[];
}

export interface GroupView {
  key: string;
  boxes: (BoxView)[];
  fields: (FieldView)[];
}

export interface HistoryView {
  filter: string;
  rows: (CallRowView)[];
  note: string;
  call: string;
  transcript: SafeHtml;
}

export interface MatrixCellView {
  key: string;
  status: string;
  html: SafeHtml;
  figures: string;
  grade: string;
  note: string;
}

export interface MatrixColumnView {
  key: string;
  grades: string;
}

export interface MatrixRowView {
  key: string;
  label: string;
  prompt: string;
  cells: (MatrixCellView)[];
}

export interface MatrixTableView {
  title: string;
  columns: (MatrixColumnView)[];
  rows: (MatrixRowView)[];
  filter: string;
  filters: (string)[];
  status: string;
  isRunning: boolean;
  code: string;
}

export interface OverviewView {
  figures: (FigureView)[];
  note: string;
  unpriced: (string)[];
  spans: (string)[];
  ticks: ([number, string])[];
  charts: (ChartView)[];
  head: (string)[];
  groups: (CallGroupView)[];
  calls: RowsView;
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

export interface PictureView {
  key: string;
  label: string;
  url: string;
}

export interface PlotView {
  label: string;
  by: string;
  groups: (PointGroupView)[];
  notes: (string)[];
  picture: AxesView | null;
  xs: DataView;
  ys: DataView;
  zooms: ("Zoom in" | "Zoom out" | "Show outliers" | "Hide outliers")[];
  scales: (ScaleView)[];
}

export interface PointGroupView {
  key: string;
  count: string;
  colour: string;
  cycle: number;
}

export interface PointView {
  point: number;
  title: string;
  text: string;
  facts: ([string, string])[];
}

export interface PresetsView {
  names: (string)[];
  selected: string;
  note: string;
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

export interface RoundView {
  key: string;
  prompt: string;
  cells: (CellView)[];
}

export interface RowView {
  key: string;
  cells: (string)[];
  label: string;
  isFailed: boolean;
}

export interface RowsView {
  title: string;
  columns: (ColumnView)[];
  rows: (RowView)[];
}

export interface RunStateView {
  name: string;
  progress: string;
  percent: number;
  isStopping: boolean;
  report: SafeHtml;
}

export interface ScaleView {
  key: string;
  isLog: boolean;
}

export interface TimelineView {
  url: string;
  alt: string;
}

export interface ToolCallView {
  key: string;
  name: string;
  isPending: boolean;
  result: BlockView | null;
}

export interface TurnCallView {
  key: string;
  pane: PaneView;
  tools: (ToolCallView)[];
}

export interface TurnView {
  key: string;
  prompt: string;
  version: number;
  versionCount: number;
  calls: (TurnCallView)[];
}

export interface VariablesView {
  names: (string)[];
  rows: ({ [name: string]: string })[];
  row: number;
}

export interface BallotIntents {
  choose: { choice: "left" | "right" | "tie" | "skip" | "undo" | "results"; turn: number };
}

export interface BoardIntents {
  add: { variant?: any };
  add_image: { url: string; name?: string };
  ask_again: { pane: string };
  choose_endpoint: { endpoint: string; pane?: string };
  edit_answer: { pane: string; text: string };
  mark_differences: { isMarked: boolean };
  new_talk: {};
  paste_rows: { text: string; row: number; name: string };
  pin: { pane: string | null };
  read_answer: { pane: string };
  read_code: {};
  remove: { pane: string };
  remove_image: { image: number };
  run_all_rows: {};
  send_prompt: { prompt: string };
  set_field: { field: string; text: string; pane?: string };
  set_own_prompt: { pane: string; text: string };
  set_prompt: { text: string };
  set_rows: { rows: ({ [name: string]: string })[]; row: number };
  set_shared: { field: string; text: string };
  set_system: { text: string; pane?: string };
  show_code: { isOpen: boolean };
  show_version: { pane: string; number: number };
  stop: { pane?: string | null };
}

export interface ComposerIntents {
  add_image: { url: string; name?: string };
  choose_endpoint: { endpoint: string; pane?: string };
  compare: {};
  decide: { pane: string; call: number; isApproved: boolean };
  delete_preset: { name: string };
  edit: { turn: number; prompt: string };
  edit_answer: { turn: number; text: string };
  filter_history: { text: string };
  load_call: { call: string };
  load_preset: { name: string };
  new_talk: {};
  paste_rows: { text: string; row: number; name: string };
  read_answer: { turn: number };
  read_code: {};
  read_turn: { turn: number };
  regenerate: { turn?: number };
  remove_image: { image: number };
  run_all_rows: {};
  save_preset: { name: string };
  send_prompt: { prompt: string };
  set_code_kind: { kind: string };
  set_field: { field: string; text: string; pane?: string };
  set_prompt: { text: string };
  set_rows: { rows: ({ [name: string]: string })[]; row: number };
  set_system: { text: string; pane?: string };
  show_call: { call: string };
  show_panel: { name: "" | "Settings" | "Code" | "History" | "Presets" };
  stop: {};
  switch: { turn: number; version: number };
  tick: { box: string; isOn: boolean };
}

export interface DashboardIntents {
  close_call: {};
  draw_timeline: { dark: boolean };
  read_part: { part: "request" | "response" | "events" };
  set_filter: { name: "range" | "model" | "endpoint" | "by"; value: string };
  set_price: { model: string; input: string; output: string };
  show_call: { callId: string };
  sort_rows: { column: number };
}

export interface ExplorerIntents {
  brush: { spans: [[number, number], [number, number]] | null };
  close_call: {};
  describe_point: { point: number };
  draw: { width: number; dark: boolean };
  draw_timeline: { dark: boolean };
  hide_groups: { groups: (number)[] };
  read_part: { part: "request" | "response" | "events" };
  show_row: { row: number };
  sort_rows: { column: number };
  toggle_log: { axis: "x" | "y" };
  zoom: { to: "Zoom in" | "Zoom out" | "Show outliers" | "Hide outliers" };
}

export interface InspectorIntents {
  close_call: {};
  draw_timeline: { dark: boolean };
  read_part: { part: "request" | "response" | "events" };
}

export interface MatrixIntents {
  filter_rows: { filter: "all" | "not graded" | "pass" | "fail" | "noted" | "failed" };
  grade: { row: string | number; variant: string; grade: string | number | null };
  note_on: { row: string | number; variant: string; note: string };
  stop: {};
}

export interface ReplyViewIntents {
  stop: { pane?: string };
}

export interface RunViewIntents {
  stop: {};
}
