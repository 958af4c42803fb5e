"""The three extension points: a provider of models, an embedder, a source of secrets (docs/guide/extend-tasklore.md).

A distribution declares one as an entry point, called without arguments. `tasklore.testing.contracts` has the suite of
each, and the errors here are those that a provider raises.
"""

from tasklore.contracts.errors import ConfigurationError as ConfigurationError
from tasklore.contracts.errors import LlmRateLimited as LlmRateLimited
from tasklore.contracts.errors import LlmRejected as LlmRejected
from tasklore.contracts.errors import LlmUnavailable as LlmUnavailable
from tasklore.contracts.extensions import Embedder as Embedder
from tasklore.contracts.extensions import ModelAnswer as ModelAnswer
from tasklore.contracts.extensions import ModelMessage as ModelMessage
from tasklore.contracts.extensions import ModelProvider as ModelProvider
from tasklore.contracts.extensions import ModelRequest as ModelRequest
from tasklore.contracts.extensions import SecretSource as SecretSource
