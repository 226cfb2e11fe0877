"""Tables of what rules name: kinds of files, languages, characters, package managers, styles of names.

Keys are regular expressions without regard to case, unless a table says something else.
"""

from typing import Any

from agentx.synthesis.language.words import vocabulary

TEST_FILES = (
    "tests/**",
    "test/**",
    "**/tests/**",
    "**/test/**",
    "**/__tests__/**",
    "**/spec/**",
    "**/test_*",
    "**/*_test.*",
    "**/*.test.*",
    "**/*.spec.*",
    "**/*Test.*",
    "**/*Tests.*",
    "**/*_spec.*",
    "**/conftest.py",
)

FILE_KINDS: dict[str, tuple[str, ...]] = {
    r"(?:jupyter |ipython )notebooks?|notebooks": ("**/*.ipynb",),
    r"lock[- ]?files?": (
        "**/package-lock.json",
        "**/yarn.lock",
        "**/pnpm-lock.yaml",
        "**/poetry.lock",
        "**/uv.lock",
        "**/Cargo.lock",
        "**/Gemfile.lock",
        "**/composer.lock",
        "**/Pipfile.lock",
        "**/go.sum",
        "**/bun.lockb",
        "**/bun.lock",
        "**/packages.lock.json",
        "**/pubspec.lock",
    ),
    r"migrations(?: files?| scripts?)?|migration (?:files?|scripts?)": (
        "**/migrations/**",
        "**/migrate/**",
    ),
    r"dockerfiles?": ("**/Dockerfile", "**/Dockerfile.*", "**/*.dockerfile"),
    r"(?:docker[- ])?compose files?": ("**/docker-compose*.y*ml", "**/compose*.y*ml"),
    r"(?:the )?ci (?:config(?:uration)?s?|pipelines?|workflows?|files?|setup)|github (?:actions"
    r"|workflows?)(?: files?)?": (
        ".github/workflows/**",
        ".gitlab-ci.yml",
        ".circleci/**",
        "**/Jenkinsfile",
        "azure-pipelines.yml",
        ".travis.yml",
        "bitbucket-pipelines.yml",
    ),
    r"(?:image|picture|photo) files?|(?:the |our |any )(?:images|photos|pictures)": (
        "**/*.png",
        "**/*.jpg",
        "**/*.jpeg",
        "**/*.gif",
        "**/*.webp",
        "**/*.svg",
    ),
    r"(?:excel|spreadsheet)(?: files?|s)|spreadsheets|workbooks": ("**/*.xlsx", "**/*.xls", "**/*.ods"),
    r"word (?:files?|documents?)": ("**/*.docx", "**/*.doc"),
    r"makefiles?": ("**/Makefile", "**/*.mk"),
    r"snapshots? files?|snapshots": ("**/__snapshots__/**", "**/*.snap"),
    r"env files?|dotenv(?: files?)?": ("**/.env", "**/.env.*"),
    r"changelog": ("**/CHANGELOG*",),
    r"(?:the )?licen[cs]e file": ("**/LICENSE*",),
    r"readme(?: files?)?": ("**/README*",),
    r"test files|(?:(?<=delete )|(?<=remove )|(?<=edit )|(?<=touch )|(?<=modify )|(?<=change )|(?<=existing )"
    r"|(?<=delete any )|(?<=failing )|(?<=old ))(?:unit |integration )?tests": TEST_FILES,
    r"typescript (?:files?|modules?|code)": ("**/*.ts", "**/*.tsx"),
    r"javascript (?:files?|modules?|code)": ("**/*.js", "**/*.jsx", "**/*.mjs"),
    r"css files?|stylesheets?": ("**/*.css", "**/*.scss"),
    r"(?:shell|bash) (?:scripts?|files?)": ("**/*.sh", "**/*.bash"),
}
"""By the name of a kind of file, its globs."""

_WEB = ("javascript", "typescript", "tsx")
LANGUAGES: dict[str, tuple[str, ...]] = {
    "python": ("python",),
    "django": ("python",),
    "typescript": ("typescript", "tsx"),
    r"ts(?= )": ("typescript", "tsx"),
    "javascript": _WEB,
    r"js(?= )": _WEB,
    "react|vue|svelte|node": _WEB,
    "Go": ("go",),
    "golang": ("go",),
    "rust": ("rust",),
    "java": ("java",),
    "spring(?: boot)?": ("java", "kotlin"),
    "kotlin": ("kotlin",),
    "c#|csharp|\\.net": ("csharp",),
    "php|laravel|symfony": ("php",),
    "ruby|rails": ("ruby",),
    "swift": ("swift",),
    r"c\+\+": ("cpp",),
    r"c(?= (?:code|files?|sources?))|firmware|embedded|arduino": ("c", "cpp"),
    "unity": ("csharp",),
    "scala": ("scala",),
    "lua": ("lua",),
    "elixir": ("elixir",),
    r"(?:bash|shell)(?= (?:scripts?|files?|code))": ("bash",),
}
"""By the name of a language or framework, the names of ast-grep."""

CALLS: dict[str, tuple[str, ...]] = {
    r"console\.\w+|alert|confirm|setTimeout|setInterval|document\.\w+|window\.\w+|fetch|require"
    r"|localStorage\.\w+|Math\.\w+|JSON\.\w+|useEffect|dangerouslySetInnerHTML": _WEB,
    r"print|input|breakpoint|os\.\w+(?:\.\w+)*|subprocess\.\w+|pickle\.\w+|logging\.\w+|time\.sleep"
    r"|datetime\.\w+(?:\.\w+)?|pd\.\w+|np\.\w+|requests\.\w+|locals|globals|setattr|getattr|yaml\.load": (
        "python",
    ),
    r"eval|exec": ("python", *_WEB, "php"),
    r"panic": ("go",),
    r"fmt\.\w+|log\.\w+|os\.Exit|ioutil\.\w+|time\.Sleep|context\.\w+": ("go",),
    r"unwrap|expect|clone|unwrap_unchecked|mem::\w+|std::\w+(?:::\w+)*": ("rust",),
    r"malloc|calloc|realloc|free|strcpy|strcat|sprintf|gets|printf|scanf|strtok|atoi|alloca|memcpy|HAL_Delay"
    r"|setjmp|longjmp|vsprintf": ("c", "cpp"),
    r"System\.out\.\w+|System\.err\.\w+|System\.exit|Thread\.sleep|System\.currentTimeMillis"
    r"|printStackTrace": ("java",),
    r"println": ("kotlin", "java"),
    r"Console\.\w+|Thread\.Sleep|DateTime\.\w+|Task\.Run|GC\.Collect": ("csharp",),
    r"var_dump|print_r|dd|dump|die|mysql_query|shell_exec|extract|error_log|unserialize": ("php",),
    r"puts|binding\.pry|byebug|pp|instance_eval|class_eval|update_attribute|save!": ("ruby",),
    r"fatalError|NSLog|debugPrint": ("swift",),
}
"""By the name of a call, the languages in which it is meant."""

MANAGERS: dict[str, tuple[str, ...]] = {
    "npm": (
        "npm install",
        "npm i",
        "npm add",
        "npm ci",
        "npm update",
        "npm run",
        "npm test",
        "npm exec",
        "npx",
    ),
    "yarn": ("yarn",),
    "pnpm": ("pnpm",),
    "bun": ("bun",),
    "pip": ("pip install", "pip3 install", "python -m pip install", "python3 -m pip install"),
    "poetry": ("poetry",),
    "uv": ("uv",),
    "pipenv": ("pipenv",),
    "conda": ("conda install", "conda create", "mamba install"),
    "easy_install": ("easy_install",),
    "brew": ("brew install",),
    "apt": ("apt install", "apt-get install"),
    "maven": ("mvn", "./mvnw"),
    "gradle": ("gradle", "./gradlew"),
}
"""Package managers, and the commands by which they change or run a project."""

FAMILIES = (("npm", "yarn", "pnpm", "bun"), ("pip", "poetry", "uv", "pipenv", "conda"), ("maven", "gradle"))
"""Package managers of which one takes the place of another."""

ECOSYSTEMS: dict[str, str] = {
    r"gems?|gemfile|ruby|bundler?": "rubygems",
    r"crates?|cargo(?:\.toml)?|rust": "cargo",
    r"npm|package\.json|node|javascript|typescript|react": "npm",
    r"requirements[\w-]*\.txt|pyproject(?:\.toml)?|python|pypi|pip": "python",
    r"go\.mod|golang|go get|go modules?": "go",
    r"pom\.xml|maven|gradle|java|kotlin": "maven",
    r"composer(?:\.json)?|php": "composer",
    r"nuget|c#|csproj|\.net": "nuget",
    r"docker(?:file)?s?|base images?": "docker",
}

STYLES: dict[str, str] = {
    r"snake[_ -]?case": r"_*[a-z][a-z0-9]*(?:_[a-z0-9]+)*_*",
    r"mixed ?caps": r"[A-Za-z][A-Za-z0-9]*",
    r"(?:lower )?camel[ -]?case": r"[_$]*[a-z][A-Za-z0-9]*",
    r"pascal[ -]?case|upper camel[ -]?case": r"_*[A-Z][A-Za-z0-9]*",
    r"kebab[ -]?case|dash-?separated|hyphenated": r"[a-z0-9]+(?:-[a-z0-9]+)*",
    r"(?:screaming|upper|constant)[_ -]snake(?:[_ -]?case)?|(?:screaming|upper|constant)[_ -]?case"
    r"|all[ -]caps": r"_*[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*",
}
"""Styles of names, and the regular expression of a whole name."""

_WEB_NAMES = "javascript typescript tsx"
Shape = tuple[str, str, str, dict[str, Any]]
DECLARATIONS: dict[str, tuple[Shape, ...]] = {
    r"functions?|methods?|hooks?|helpers?": (
        ("python php c cpp lua scala bash", "function_definition", "name", {}),
        (f"{_WEB_NAMES} go swift", "function_declaration", "name", {}),
        ("kotlin", "function_declaration", "name", {}),
        (_WEB_NAMES, "method_definition", "name", {}),
        ("go java csharp php", "method_declaration", "name", {}),
        ("rust", "function_item", "name", {}),
        ("ruby", "method", "name", {}),
    ),
    r"class(?:es)?|models?|controllers?|components? class(?:es)?": (
        ("python", "class_definition", "name", {}),
        (f"{_WEB_NAMES} java csharp php swift", "class_declaration", "name", {}),
        ("ruby", "class", "name", {}),
        ("cpp", "class_specifier", "name", {}),
    ),
    r"(?<!no )(?<!without )(?<!any )exceptions?|errors?(?: class(?:es)?| types?)": (
        ("python", "class_definition", "name", {"regex": r"^class\s+\w+\([^)]*(?:Exception|Error)\b"}),
        (
            "java csharp php",
            "class_declaration",
            "name",
            {"regex": r"(?:extends|:)\s+\w*(?:Exception|Error)\b"},
        ),
    ),
    r"interfaces?|protocols?": (
        ("typescript tsx java csharp php", "interface_declaration", "name", {}),
        ("swift", "protocol_declaration", "name", {}),
        ("go", "type_spec", "name", {"has": {"kind": "interface_type"}}),
    ),
    r"structs?": (
        ("rust", "struct_item", "name", {}),
        ("csharp", "struct_declaration", "name", {}),
        ("c cpp", "struct_specifier", "name", {}),
        ("go", "type_spec", "name", {"has": {"kind": "struct_type"}}),
    ),
    r"enums?": (
        ("typescript tsx java csharp php", "enum_declaration", "name", {}),
        ("rust", "enum_item", "name", {}),
        ("c cpp", "enum_specifier", "name", {}),
    ),
    r"traits?": (("rust", "trait_item", "name", {}), ("php", "trait_declaration", "name", {})),
    r"type aliases|types": (
        ("typescript tsx", "type_alias_declaration", "name", {}),
        ("go", "type_spec", "name", {}),
    ),
    r"macros?|defines?": (
        ("c cpp", "preproc_def", "name", {}),
        ("c cpp", "preproc_function_def", "name", {}),
    ),
    r"constants?|consts?": (
        ("rust", "const_item", "name", {}),
        ("go", "const_spec", "name", {}),
        ("c cpp", "preproc_def", "name", {}),
        (
            "java",
            "variable_declarator",
            "name",
            {"inside": {"kind": "field_declaration", "regex": r"\bstatic\s+final\b"}},
        ),
        ("php", "const_element", "name", {}),
        (
            "python",
            "assignment",
            "left",
            {
                "inside": {"kind": "expression_statement", "inside": {"kind": "module"}},
                "has": {"field": "right", "regex": r"^[\d\"']"},
            },
        ),
    ),
    r"variables?|locals?|identifiers?": (
        ("python", "assignment", "left", {"has": {"field": "left", "kind": "identifier"}}),
        (f"{_WEB_NAMES} java csharp", "variable_declarator", "name", {}),
        ("rust", "let_declaration", "pattern", {"has": {"field": "pattern", "kind": "identifier"}}),
        ("c cpp", "init_declarator", "declarator", {"has": {"field": "declarator", "kind": "identifier"}}),
        ("go", "var_spec", "name", {}),
    ),
}
"""By the name of a declaration: languages, the node kind, the field that has its name, and a further rule."""

QUALIFIERS: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        (
            r"\basync(?:hronous)? (?:methods?|functions?)\b|\b(?:methods?|functions?) (?:that (?:is"
            r"|are) )?(?:declared |marked )?`?async\b"
        ),
        {"regex": r"(?m)^\s*(?:\w+\s+)*async\s"},
    ),
    (
        r"\bprivate (?:\w+ )?(?:methods?|functions?|fields?|members?)\b",
        {"regex": r"(?m)^\s*(?:\w+\s+)*private\s"},
    ),
    (r"\bpublic (?:\w+ )?(?:methods?|functions?)\b", {"regex": r"(?m)^\s*(?:\w+\s+)*public\s"}),
    (r"\babstract (?:base )?class\w*", {"regex": r"(?m)^\s*(?:\w+\s+)*abstract\s"}),
    (r"\bbooleans?\b", {"regex": r"=\s*(?:true|false|True|False|!)|\bbool(?:ean)?\b"}),
    (r"\bhooks?\b", {"regex": r"\buse(?:State|Effect|Memo|Ref|Context|Callback|Query)\("}),
    (
        r"\btest (?:methods?|functions?|cases?|names?)\b",
        {
            "regex": r"^(?:def|async def|func|fn"
            r"|fun)\s+[Tt]est|@Test\b|\[(?:Fact|Test)"
        },
    ),
)
"""Words that limit which declarations are meant, and what these look like."""

_WEB_ROUTES = r"(?:Get|Post|Put|Delete|Patch|Request)Mapping|GET|POST|PUT|DELETE|PATCH"
ENDPOINTS: tuple[tuple[str, tuple[str, str, str]], ...] = (
    ("java", ("method_declaration", "modifiers", _WEB_ROUTES)),
    ("kotlin", ("function_declaration", "modifiers", _WEB_ROUTES)),
    ("csharp", ("method_declaration", "attribute_list", r"Http(?:Get|Post|Put|Delete|Patch)|Route")),
    ("php", ("method_declaration", "attribute_list", r"Route|Get|Post|Put|Delete|Patch")),
    (
        "python",
        ("decorated_definition", "decorator", r"(?:get|post|put|delete|patch|route|api_view|websocket)"),
    ),
)
"""By languages, declarations that answer requests: node kind, the kind of their marks, and the usual ones."""

PROGRAMS = vocabulary(
    """
    git docker kubectl terraform tofu helm npm npx yarn pnpm bun pip poetry uv cargo go make mvn gradle
    dotnet aws gcloud az ansible ansible-playbook psql mysql redis-cli curl wget rsync scp ssh rm mv cp
    chmod chown sudo systemctl rake rails bundle php composer artisan alembic flask django-admin manage.py
    pytest tox ruff black mypy eslint prettier tsc vite webpack ffmpeg pandoc latexmk rustup rustc gcc
    clang cmake bazel buf protoc prisma supabase vercel fly flyctl heroku firebase gh glab sed dd mkfs
    shutdown kill killall pkill crontab dbt airflow spark-submit jupyter conda nix brew apt apt-get snap
    flutter dart adb xcodebuild pod fastlane swift terragrunt vault consul pulumi serverless sam cdk godot
    unity
    """
)
"""Programs whose name in a rule about a command line means the program."""

OBVIOUS_PROGRAMS = PROGRAMS - vocabulary(
    "go make black fly vault swift flask rake sam buf snap nix unity spark cp"
)
"""Those of them that are no common word."""

MANY_COMMANDS = vocabulary(
    """
    git docker podman kubectl helm terraform tofu npm pnpm yarn bun uv poetry cargo go dotnet gh aws gcloud az
    flutter dart rails composer bundle systemctl brew apt apt-get conda vault fly heroku supabase vercel
    firebase
    cdk sam pulumi buf prisma alembic dbt airflow deno nix rustup pod adb swift mix cabal stack manage.py
    artisan
    """
)
"""Programs whose first argument is a subcommand."""

DEEDS: tuple[tuple[str, dict[str, tuple[str, ...]]], ...] = (
    (
        r"\bforce[- ]?push\w*|\bpush\w* (?:with )?(?:--force|-f)\b|\bforce (?:a )?push",
        {"programs": ("git push",), "forbidden_flags": ("--force", "-f", "--force-with-lease")},
    ),
    (
        (
            r"\b(?:skip|bypass|disable|circumvent|get around|dodge)\w* (?:the |our |any )?(?:git "
            r"|pre-?commit |commit )*hooks?\b"
        ),
        {"programs": ("git commit", "git push"), "forbidden_flags": ("--no-verify",)},
    ),
    (
        r"\bamend(?:ing|ed)?\b(?=.*\bcommit|$| )",
        {"programs": ("git commit",), "forbidden_flags": ("--amend",)},
    ),
    (r"\brebas(?:e[sd]?|ing)\b", {"programs": ("git rebase",)}),
    (
        (
            r"\b(?:push|commit|merge)(?:es|s|t?ing|t?ed)? (?:\w+ ){0,3}?(?:to|on|onto|into) (?:the )?[`\"']?"
            r"(?P<branch>(?:main|master|production|prod|release|develop|trunk)\b(?:/[\w.-]*\w)?)"
        ),
        {"programs": ("git push",)},
    ),
    (r"\b(?:git )?stash(?:ing|es)?\b(?=.*\bgit\b|$|ing)", {"programs": ("git stash",)}),
    (
        r"\bpush(?:ing)? (?:any |git )?tags\b",
        {"programs": ("git push",), "forbidden_flags": ("--tags", "--follow-tags")},
    ),
    (
        (
            r"\b(?:run\w*|appl\w+|execut\w+|trigger\w*|start\w*) (?:any |the |our |new |pending )*(?:\w+ )?"
            r"migrations?\b(?! (?:tests?|files?)\b)|\bmigrat(?:e|ing) the (?:\w+ )?database\b"
        ),
        {
            "programs": (
                *(f"{one}manage.py migrate" for one in ("", "python ", "python3 ", "uv run ", "poetry run ")),
                *(
                    f"{one}prisma {two}"
                    for one in ("", "npx ", "pnpm ", "yarn ")
                    for two in ("migrate", "db push")
                ),
                *(
                    f"{one}{two}"
                    for one in ("", "npx ")
                    for two in ("knex migrate:latest", "sequelize db:migrate")
                ),
                *(f"{one}db:migrate" for one in ("rails ", "rake ", "bin/rails ", "bundle exec rails ")),
                "alembic upgrade",
                "flask db upgrade",
                "php artisan migrate",
                "dotnet ef database update",
                "diesel migration run",
                "sqlx migrate run",
                "flyway migrate",
                "liquibase update",
                "goose up",
                "npm run migrate",
                "make migrate",
            )
        },
    ),
    (r"\bsudo\b", {"programs": ("sudo",)}),
    (
        r"\brm -rf?\b|\brm -fr\b",
        {"programs": ("rm",), "forbidden_flags": ("-rf", "-fr", "-r", "-R", "--recursive")},
    ),
)
"""Deeds with a name of their own, and the fields of their check."""

LIBRARIES = vocabulary(
    """
    lodash underscore ramda moment dayjs date-fns luxon axios got superagent node-fetch ky jquery react vue
    svelte
    angular preact solid-js redux mobx zustand recoil jotai tailwindcss tailwind bootstrap bulma
    styled-components
    express fastify koa nestjs next nuxt vite webpack rollup parcel esbuild babel jest mocha jasmine vitest
    ava
    cypress playwright puppeteer prisma typeorm sequelize mongoose knex drizzle zod yup joi winston pino
    bunyan
    three d3 chart.js echarts leaflet socket.io graphql apollo requests httpx aiohttp urllib3 flask django
    fastapi
    starlette tornado bottle sqlalchemy peewee pandas polars dask numpy scipy matplotlib seaborn plotly
    bokeh altair
    celery rq pydantic attrs marshmallow loguru structlog click typer pytest nose unittest boto3 redis pymongo
    tensorflow keras pytorch torch sklearn scikit-learn nltk spacy beautifulsoup4 bs4 scrapy selenium pyyaml
    openpyxl xlrd xlsxwriter zap logrus zerolog gorm gin echo fiber chi cobra viper testify gomock serde tokio
    async-std anyhow thiserror eyre reqwest hyper actix rocket axum clap diesel sqlx log4j logback lombok
    guava
    jackson gson moshi mockito powermock easymock junit hibernate jooq retrofit okhttp rxjava dagger hilt koin
    glide coil picasso guzzle symfony laravel doctrine monolog carbon phpunit rails sinatra devise sidekiq
    resque
    rspec minitest nokogiri httparty faraday pry alamofire kingfisher snapkit realm newtonsoft.json automapper
    mediatr dapper serilog nlog nunit xunit moq boost poco fmt spdlog eigen qt gtest tidyverse dplyr
    data.table
    ggplot2 plyr reshape2 dotenv nodemon
    """
)
"""Names of well-known libraries, as people say them."""
