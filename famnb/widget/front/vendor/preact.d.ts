// What the front end uses of preact.js: htm's templates have no types, components do.
export type VNode = object;
export type Ref<T> = { current: T };
export function html(strings: TemplateStringsArray, ...values: unknown[]): VNode;
export function h(type: unknown, props: object | null, ...children: unknown[]): VNode;
export function render(node: VNode | null, element: Element | ShadowRoot): void;
export class Component<P = object, S = object> {
  props: P;
  state: S;
  setState(state: Partial<S>): void;
  shouldComponentUpdate?(props: P, state: S): boolean;
  render(props: P, state: S): unknown;
}
export function createContext<T>(value: T): { Provider: unknown; Consumer: unknown; value?: T };
export function useState<T>(initial: T | (() => T)): [T, (next: T | ((previous: T) => T)) => void];
export function useEffect(effect: () => void | (() => void), inputs?: unknown[]): void;
export function useLayoutEffect(effect: () => void | (() => void), inputs?: unknown[]): void;
export function useRef<T>(initial: T): Ref<T>;
export function useMemo<T>(make: () => T, inputs: unknown[]): T;
export function useContext<T>(context: { value?: T }): T;
