"""Load on a service: calls that begin when they are due, what they met, and the highest load that keeps an objective.

arrivals.py      when calls begin, and whether those in flight grow without end: rules without a thread or a clock
step.py          one step: starts its calls, ends early where their number grows, on the caller's thread
dask_step.py     one step from the workers of a Dask cluster
search.py        the highest load that keeps an objective, a rule too
measure.py       what a step's recorded calls say
load.py          `famnb.Load`: steps, the search for the peak, the report
"""

from famnb.load.load import Load as Load
