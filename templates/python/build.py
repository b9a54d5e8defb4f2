"""`python3 build.py` builds dist/{{name}}.wasm; `python3 build.py test` runs the tests, which needs nothing but Python."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "vendor" / "sdk-python"))
sys.dont_write_bytecode = True

from a2a_hub.build import main  # noqa: E402

main(HERE)
